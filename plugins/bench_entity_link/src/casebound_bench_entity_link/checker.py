"""What an admitted suggestion says, so that it can be laid beside the reference. Nothing here judges a rationale."""

from __future__ import annotations

from collections.abc import Mapping


def assessment_of(reply: Mapping[str, object]) -> str:
    """Return the assessment of a suggestion that parser, schema and rules have admitted."""
    return str(reply["assessment"])
