"""One record of an export: a line of JSON Lines, or an element of a JSON array.

It is read as the JSON reader reads a report, but exports carry more than a report has. Where the object has a `body`,
every key that is no part of a report is read past: it stays in the kept bytes, and in no source. Without a `body` such
a key is refused as the JSON reader does, for the text may stand under it.
"""

from __future__ import annotations

from casebound.contracts.case import Report
from casebound.errors import SettingsError
from casebound.intake.readers.json import KEYS, parse_object, read_strictly, report_of

_SEVERAL = "where the file holds a report a line, `casebound import` takes it apart"


def read(text: str) -> Report:
    """Return the report that `text` holds.

    Raises:
        SettingsError: `REPORT_SYNTAX`, as the JSON reader.
    """
    try:
        members = parse_object(text)
    except SettingsError as exc:
        if exc.where is None or not text.strip().count("\n"):
            raise
        raise SettingsError("REPORT_SYNTAX", where=exc.where, found=exc.found, hint=_SEVERAL) from exc
    if "body" not in members:
        return read_strictly(members)
    return report_of({key: value for key, value in members.items() if key in KEYS})
