"""What a rule found wrong in a model's reply, and what `verify` found wrong in a package."""

from __future__ import annotations

from pydantic import Field

from casebound.contracts.base import Contract


class Finding(Contract):
    """One thing that does not hold.

    Attributes:
        code: a row of the table of codes.
        path: JSON pointer into the reply (`/resolutions/0/source_ids`); empty: the reply as a whole.
        message: one sentence: what was found.
        allowed: what would be accepted at that place, empty where that cannot be listed.
        details: further facts for the feedback (capture ids, indices …), JSON data.
    """

    code: str
    path: str
    message: str
    allowed: tuple[str, ...] = ()
    details: dict[str, object] = Field(default_factory=dict)


class VerificationFinding(Contract):
    """One thing in a package that does not hold.

    Attributes:
        code: a row of the table of codes.
        file: path inside the package.
        pointer: JSON pointer inside that file; empty: the file as a whole.
        message: one sentence.
    """

    code: str
    file: str
    pointer: str
    message: str
