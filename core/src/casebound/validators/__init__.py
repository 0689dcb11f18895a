"""Versioned semantic rules, one module a stage: a validator is a pure function with a code and a revision.

A published revision never changes its meaning; a better rule is a new revision or a new code, named by new protocols.
"""
