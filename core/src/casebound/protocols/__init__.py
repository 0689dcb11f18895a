"""Versioned prompts: one file a version, with append-only named parts. A published version never changes by one byte.

A version imports `specs`, `contracts`, `canonical` and `protocols.parts` only: never another version, never anything
that may change. It uses no clock, no randomness, no environment, no file. Adding a version is one new file
`<stage>/vN.py` that exports `PROTOCOL`; `registry` finds it by listing the folder.
"""
