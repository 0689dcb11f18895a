"""An issue as GitHub exports it: by `gh … --json`, or as its REST interface returns it.

- The case id is `repo#n`, from the issue's web address (`html_url`, or `url` of `gh`) or its REST address (`url`); the
  owner is no part of it. A number that is not the one in the address is refused.
- `title` and `body` (null: empty) are the report's; `comments` are those of the export, objects with a `body` or texts.
  REST gives their number in place of them, and then the report has none (`missing_comments` counts them).
- Everything else (author, labels, reactions, state, times) is read past: it stays in the kept bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from casebound.contracts.case import Report
from casebound.intake.readers.json import items_of, parse_object, refuse, text_or_none, title_of, type_of

# https://github.com/o/r/issues/12, https://api.github.com/repos/o/r/issues/12, https://host/api/v3/repos/o/r/issues/12
_ADDRESS = re.compile(r"https?://[^/?#]+/(?:(?:api/v3/)?repos/)?[^/?#]+/([^/?#]+)/(?:issues|pulls?)/([0-9]{1,18})")
_HINT = "export it with `--json number,title,body,comments,url`, or take what the REST interface returns unchanged"


def is_issue(members: Mapping[str, object]) -> bool:
    """Tell whether a JSON object is an issue of GitHub, or a comment on one, and no report of another kind."""
    if isinstance(members.get("number"), int):
        return bool({"url", "html_url"} & members.keys()) or "id" not in members
    return "issue_url" in members and "number" not in members


def is_pull_request(members: Mapping[str, object]) -> bool:
    """Tell whether an export of issues says that this one is a pull request: no report of what happened."""
    return members.get("pull_request") is not None or members.get("isPullRequest") is True


def missing_comments(members: Mapping[str, object]) -> int:
    """Return how many comments the export says that the issue has, where it holds their number only."""
    comments = members.get("comments")
    return comments if isinstance(comments, int) and not isinstance(comments, bool) else 0


def read(text: str) -> Report:
    """Return the report that the issue is.

    Raises:
        SettingsError: `REPORT_SYNTAX` with line and column, or with the JSON pointer of what does not fit.
    """
    members = parse_object(text)
    if "issue_url" in members and "number" not in members:
        refuse("/number", "a comment without its issue", "an issue", "export issues with their comments")
    comments = members.get("comments")
    if isinstance(comments, bool) or not isinstance(comments, int | list | None):
        refuse("/comments", type_of(comments), "an array, or their number")
    listed = None if isinstance(comments, int) else comments
    return Report(
        case_id=_case_id(members),
        title=title_of(members),
        body=text_or_none(members.get("body"), "/body") or "",
        comments=tuple(_comment(item, pointer) for item, pointer in items_of(listed, "/comments")),
    )


def _comment(value: object, pointer: str) -> str:
    if isinstance(value, dict):
        return text_or_none(value.get("body"), f"{pointer}/body") or ""
    return text_or_none(value, pointer) or ""


def _case_id(members: Mapping[str, object]) -> str:
    number = members.get("number")
    if isinstance(number, bool) or not isinstance(number, int):
        refuse("/number", type_of(number), "the number of an issue")
    key = "html_url" if members.get("html_url") is not None else "url"
    address = text_or_none(members.get(key), f"/{key}")
    if address is None:
        refuse(f"/{key}", "no address, so nothing says which repository it is of", "the address of the issue", _HINT)
    found = _ADDRESS.match(address)
    if found is None:
        refuse(f"/{key}", ascii(address[:200]), "the address of an issue", _HINT)
    if int(found[2]) != number:
        refuse("/number", str(number)[:20], f"{found[2][:20]}, as its address says")
    return f"{found[1]}#{number}"
