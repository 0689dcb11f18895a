"""One record of an export: a line of JSON Lines, or an element of a JSON array.

It is read as the JSON reader reads a report, but exports carry more than a report has. Where the object has a `body`,
every key that is no part of a report is read past: it stays in the kept bytes, and in no source. Without a `body` such a
key is refused as the JSON reader does, for the text may stand under it.
"""

from __future__ import annotations

from casebound.contracts.case import Report
from casebound.intake.readers.json import KEYS, parse_object, read_strictly, report_of


def read(text: str) -> Report:
    """Return the report that `text` holds.

    Raises:
        SettingsError: `REPORT_SYNTAX`, as the JSON reader; several lines are what `casebound import` takes apart.
    """
    members = parse_object(text)
    if "body" not in members:
        return read_strictly(members)
    return report_of({key: value for key, value in members.items() if key in KEYS})
