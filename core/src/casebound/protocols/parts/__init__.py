"""Named parts that versions share. Append only: what a published version uses never changes.

A better part gets a new name.
"""
