"""Finds the built-in versions by listing the folders; nobody edits a table to add one."""

from __future__ import annotations

import re
from importlib import import_module, resources

from casebound.specs import CORE_STAGES, PromptProtocol

_VERSION = re.compile(r"^v([0-9]+)\.py$")


def built_in_protocols() -> list[PromptProtocol]:
    """Return every built-in version, by stage and then by number."""
    return [
        import_module(f"casebound.protocols.{stage}.v{number}").PROTOCOL
        for stage in CORE_STAGES
        for number in _versions(stage)
    ]


def _versions(stage: str) -> list[int]:
    names = (entry.name for entry in resources.files(f"casebound.protocols.{stage}").iterdir())
    return sorted(int(match[1]) for match in map(_VERSION.match, names) if match)
