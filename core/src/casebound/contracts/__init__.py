"""Frozen models of every artifact. One module an artifact; a published format never changes, it gets a successor."""
