"""Versioned semantic rules, one module a stage: a validator is a function with a code and a revision, pure and without memory.

A published revision never changes its meaning; a better rule is a new revision or a new code, named by new protocols.
"""
