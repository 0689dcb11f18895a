"""The error tree and the table of codes.

A class says who must act, a code says what happened. An error carries facts as fields; its message is made from them:
where, what was found, what is accepted, what to do, each on one line, whatever a value holds. A secret can not be a
field. Plugins add rows with `register_codes`; a row that is taken is an error. Codes are never renamed and never reused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class CaseboundError(Exception):
    """Everything that casebound raises on purpose.

    Attributes:
        code: a row of `CODES`.
        found: what was there.
        where: the place in words (a file, a table, a plugin).
        path: the file concerned, if any.
        pointer: JSON pointer or settings key inside it, if any.
        expected: what was expected there.
        allowed: the values that would be accepted.
        hint: what to do; the code's own hint where none is given.
    """

    def __init__(
        self,
        code: str,
        *,
        found: str | None = None,
        where: str | None = None,
        path: str | None = None,
        pointer: str | None = None,
        expected: str | None = None,
        allowed: Sequence[str] = (),
        hint: str | None = None,
    ) -> None:
        self.code = code
        self.found = found
        self.where = where
        self.path = path
        self.pointer = pointer
        self.expected = expected
        self.allowed = tuple(allowed)
        row = CODES.get(code)
        self.summary = row.summary if row else code
        self.hint = hint or (row.hint if row else "")
        super().__init__(self._message())

    def placed(self, path: str, pointer: str | None = None) -> Self:
        """Add the file, and the key in it, that only a caller knows; return the error itself."""
        self.path = self.path or path
        self.pointer = pointer or self.pointer
        self.args = (self._message(),)
        return self

    @property
    def exit_status(self) -> int:
        """The documented exit status of a command that ends with this error."""
        row = CODES.get(self.code)
        return row.exit_status if row else 1

    def _message(self) -> str:
        place = " ".join(_line(part) for part in (self.path, self.pointer and f"at {self.pointer}", self.where) if part)
        parts = [f"{self.code}: {self.summary}"]
        if place:
            parts.append(f"where: {place}")
        if self.found is not None:
            parts.append(f"found: {_line(self.found)}")
        if self.expected is not None:
            parts.append(f"expected: {_line(self.expected)}")
        if self.allowed:
            parts.append(f"accepted: {_line(_listing(self.allowed))}")
        if self.hint:
            parts.append(f"what to do: {self.hint}")
        return "\n  ".join(parts)


def _line(value: str) -> str:
    """Return `value` with every character that would end the line, or steer a terminal, written as `⟦U+000A⟧`."""
    return _CONTROL.sub(lambda sign: f"⟦U+{ord(sign[0]):04X}⟧", value)


def _listing(values: Sequence[str], most: int = 30) -> str:
    shown = ", ".join(values[:most])
    return shown if len(values) <= most else f"{shown}, … ({len(values) - most} more)"


class SettingsError(CaseboundError):
    """The operator must change a setting, an argument or a report."""


class UnavailableError(CaseboundError):
    """Something outside does not answer."""

    def __init__(self, code: str, *, retryable: bool = False, **facts: object) -> None:
        self.retryable = retryable
        super().__init__(code, **facts)  # type: ignore[arg-type]  # the facts of CaseboundError


class ProviderError(UnavailableError):
    """A model server refused, failed or did not answer.

    Attributes:
        retryable: whether the same request may succeed later.
        retry_after: the server's own wish in seconds, None where it said nothing usable.
    """

    def __init__(self, code: str, *, retryable: bool, retry_after: float | None = None, **facts: object) -> None:
        self.retry_after = retry_after
        super().__init__(code, retryable=retryable, **facts)


class ResearchError(UnavailableError):
    """The operator's database did not answer a look-up. Never the same as finding nothing."""


class ReplyError(CaseboundError):
    """The model's reply does not hold; it feeds the correction loop."""


class IntegrityError(CaseboundError):
    """Bytes on disk do not hold."""


class PluginError(CaseboundError):
    """A plugin is missing, broken or clashes; the message names distribution and version."""


class ContractError(CaseboundError):
    """A promise between our own parts is broken: a bug."""


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the table of codes."""

    name: str
    error: str
    summary: str
    hint: str
    exit_status: int
    since: str = "0.1"


CODES: dict[str, Code] = {}

# Of the codes below, the failures of a model server that time may mend: the same request is worth sending again.
TRANSIENT = ("LLM_RATE_LIMITED", "LLM_TIMEOUT", "LLM_UNAVAILABLE")
# Those by which a server has refused a request: it ran no model for it, so the call took no token.
REFUSALS = ("LLM_AUTH", "LLM_QUOTA", "LLM_RATE_LIMITED", "LLM_REQUEST")


def register_codes(rows: Iterable[Code]) -> None:
    """Add rows to the table.

    Raises:
        PluginError: a code is taken by another row.
    """
    for row in rows:
        known = CODES.get(row.name)
        if known is not None and known != row:
            raise PluginError("PLUGIN_CLASH", found=f"a second meaning for the code {row.name}", expected=known.summary)
        CODES[row.name] = row


def _rows(error: type[CaseboundError], exit_status: int, *rows: tuple[str, str, str]) -> list[Code]:
    return [Code(name, error.__name__, summary, hint, exit_status) for name, summary, hint in rows]


register_codes(
    [
        *_rows(
            SettingsError,
            2,
            (
                "SETTINGS_FILE",
                "the settings file cannot be used",
                "write one with `casebound init`, or name one with --project-config",
            ),
            ("SETTINGS_SYNTAX", "the settings file is not valid TOML", "repair the place that is named"),
            ("SETTINGS_KEY", "the settings hold a key that nobody reads", "remove it, or correct its spelling"),
            ("SETTINGS_VALUE", "a setting has a value that is not accepted", "correct the value"),
            ("SETTINGS_VARIABLE", "an environment variable is not set", "set it, then repeat the command"),
            (
                "SETTINGS_COMMAND",
                "the command that prints a secret failed",
                "run it in a terminal; it must print the secret and nothing else",
            ),
            (
                "SETTINGS_SECRET",
                "a secret stands in a settings file, or is not usable as one",
                "put the whole URL or the key into an environment variable and name the variable",
            ),
            (
                "SETTINGS_PRICE",
                "money is capped, and somebody who may be asked has no price",
                "give [llm.price], or the price of that stage or profile, or take the cap away",
            ),
            (
                "SETTINGS_TABLE",
                "a table is not in the allowlist, or not in the database",
                "add it to [database] tables, if casebound may read it",
            ),
            (
                "SETTINGS_DATABASE",
                "there is no such database, or what is there is none",
                "correct [database], or put the database where it says",
            ),
            ("SETTINGS_COLUMN", "a column is not in the table", "name columns that the table has"),
            ("SETTINGS_DRIVER", "the database driver is not installed", "install the driver, or use SQLite"),
            (
                "SETTINGS_NAME",
                "no plugin offers what the settings name",
                "install the plugin, or use one of the accepted names",
            ),
            ("USAGE", "the command cannot be understood", "see `casebound --help`"),
            (
                "CASE_UNKNOWN",
                "the workspace holds no such case",
                "look at the workspace, or name the case as `show` prints it",
            ),
            (
                "PACKAGE_UNREADABLE",
                "there is no package at this place, or it cannot be read",
                "name the folder that holds package.json, not a case id; `casebound show CASE` prints it",
            ),
            ("REPORT_UNREADABLE", "the report cannot be read", "check the path and the permissions"),
            ("REPORT_FORMAT", "no reader takes this kind of file", "give Markdown, plain text or JSON"),
            ("REPORT_SYNTAX", "the report is not what its file name says", "repair the place that is named"),
            (
                "REPORT_TOO_LARGE",
                "the report is larger than [intake] max_bytes",
                "raise the limit, or shorten the report",
            ),
            ("REPORT_ENCODING", "the report is not valid UTF-8", "convert it to UTF-8"),
            ("REPORT_BINARY", "the report holds bytes that no text has", "give the text of the report"),
            ("REPORT_EMPTY", "the report holds no text", "give a title or a body"),
            (
                "REPORT_DUPLICATE",
                "the workspace already holds this report, or another one with its id",
                "resolve that case, or give --package-id",
            ),
            (
                "CASE_ID",
                "a case id or package id is not a safe name",
                "use letters, digits and . _ # -, at most 100, a letter or digit first",
            ),
            (
                "INDEX_NOT_OURS",
                "the settings name a file for the index that is something else",
                "correct index_url; if the file is to go, remove it yourself",
            ),
            ("WORKSPACE_LINK", "a path in the workspace is a link or not a folder", "remove the link"),
            ("CATALOG_TERM", "the text cannot be looked up", "give a text without NUL and without lone surrogates"),
            ("OUTPUT_FILE", "the file cannot be written", "name a new file in a folder that can be written"),
            (
                "REPLAY_SOURCE",
                "the recorded replies cannot be used",
                "name a recording that nobody altered, or a package that `casebound verify` accepts",
            ),
            (
                "BENCH_FILE",
                "a file of a benchmark cannot be read",
                "name a regular file with strict JSON in UTF-8, within the limit",
            ),
            ("BENCH_CORPUS", "the corpus does not hold", "repair the place that is named, before anything is frozen"),
            (
                "BENCH_IDENTITY",
                "what a measurement must bind cannot be bound, or is not what was bound",
                "put the named part right, or prepare a new bundle; receipts and captures of another identity do not count",
            ),
            (
                "BENCH_OUTPUT",
                "the bundle cannot be written there",
                "name a new folder by its absolute path, outside the repository, in a folder that exists",
            ),
            ("BENCH_BUNDLE", "the bundle does not hold", "restore it from a copy, or prepare a new one"),
            (
                "BENCH_LIVE",
                "the live run does not hold, or may not be made so",
                "`bench live prepare` makes a new plan in a new folder",
            ),
            (
                "BENCH_CHANGED",
                "what the plan binds is not what is here",
                "put back what differs, or prepare a new plan; nothing was called",
            ),
            ("BENCH_COMPARE", "the two runs cannot stand side by side", "compare runs of one frozen measurement"),
            (
                "BENCH_CAPTURES",
                "the captures do not hold, or belong to something else",
                "name the captures of this measurement as they were written",
            ),
            (
                "BENCH_RECEIPT",
                "a review receipt does not hold",
                "let its reviewer correct the place that is named; nobody else may",
            ),
            (
                "BENCH_REVIEW",
                "a review of an output does not hold",
                "let its reviewer correct the place that is named; `bench review` writes new forms",
            ),
        ),
        *_rows(
            UnavailableError,
            1,
            ("WORKSPACE_WRITE", "the workspace cannot be written", "check space and permissions of the folder"),
            ("CASE_BUSY", "another process works on this case", "wait until it has ended, then repeat the command"),
        ),
        *_rows(
            UnavailableError,
            3,
            (
                "INDEX_UNAVAILABLE",
                "the index of the workspace cannot be used",
                "check the server or the disk; no case is lost, `casebound reindex` makes the index again",
            ),
        ),
        *_rows(
            ResearchError,
            3,
            ("RESEARCH_UNAVAILABLE", "the database did not answer", "check the server, then `casebound resume CASE`"),
        ),
        *_rows(
            ProviderError,
            1,
            ("LLM_RATE_LIMITED", "the model server asks to wait", "the case goes on after its retry time"),
            (
                "LLM_TIMEOUT",
                "the model server did not answer in time",
                "the case goes on after its retry time; see [llm] timeout_s",
            ),
            ("LLM_UNAVAILABLE", "the model server cannot be reached or failed", "check base_url and the server"),
            ("LLM_AUTH", "the model server refused the key", "check the key, then `casebound resume CASE`"),
            (
                "LLM_QUOTA",
                "the account of the model server is used up",
                "raise the quota, then `casebound resume CASE`",
            ),
            (
                "LLM_REQUEST",
                "the model server refuses the request itself",
                "correct base_url, then `casebound resume CASE`; another model or response_format needs"
                " `casebound revise CASE`",
            ),
            (
                "LLM_CALL_UNKNOWN",
                "a call was sent and its reply never reached the disk",
                "`casebound resume CASE` sends it again",
            ),
        ),
        *_rows(
            ReplyError,
            1,
            (
                "LLM_OUTPUT_JSON",
                "the reply is not exactly one strict JSON value",
                "answer with one JSON object and nothing else",
            ),
            ("LLM_OUTPUT_SCHEMA", "the reply does not fit the schema", "answer with the fields that the schema names"),
            ("LLM_INCOMPLETE_OUTPUT", "the reply was cut off", "answer more briefly"),
            ("LLM_REFUSED", "the model refused to answer", "answer the task as stated"),
            (
                "ENTITY_RESOLUTION_INVALID_RESPONSES",
                "too many invalid replies while resolving entities",
                "read them below attempts/, then `casebound revise CASE` asks anew",
            ),
            (
                "INTERPRETATION_INVALID_RESPONSES",
                "too many invalid replies while interpreting",
                "read them below attempts/, then `casebound revise CASE` asks anew",
            ),
        ),
        *_rows(
            ReplyError,
            1,
            ("ENTITY_RESOLUTION_SEARCH_LIMIT", "a plan proposes too many searches", "propose fewer"),
            (
                "ENTITY_RESOLUTION_UNKNOWN_CATALOG",
                "a search names a catalog that is not configured",
                "use a listed catalog",
            ),
            ("ENTITY_RESOLUTION_UNKNOWN_ROLE", "a role is not one of the case", "use a listed role"),
            ("ENTITY_RESOLUTION_UNREAD_SOURCE", "a cited source was not given as readable", "cite listed sources"),
            (
                "ENTITY_RESOLUTION_UNGROUNDED_TERM",
                "a search term does not stand in a source that it cites",
                "copy it exactly",
            ),
            ("ENTITY_RESOLUTION_DUPLICATE_SEARCH", "a search is proposed twice", "propose it once"),
            (
                "ENTITY_RESOLUTION_RESOLUTION_ORDER",
                "not exactly one resolution a search, in order",
                "answer each search once",
            ),
            (
                "ENTITY_RESOLUTION_STATUS_ENTITY",
                "an entity stands where there may be none, or is missing",
                "give it only if selected",
            ),
            ("ENTITY_RESOLUTION_UNKNOWN_CANDIDATE", "a selected entity is no row of its search", "select a listed row"),
            (
                "ENTITY_RESOLUTION_TRUNCATED_SELECTION",
                "something was selected from a search that was cut off",
                "say ambiguous",
            ),
            (
                "ENTITY_RESOLUTION_CAPTURE_SOURCE",
                "a resolution does not cite the capture of its search",
                "cite it in source_ids",
            ),
            (
                "ENTITY_RESOLUTION_MENTION_SOURCE",
                "a resolution cites no mention of its search",
                "cite one in source_ids",
            ),
            ("INTERPRETATION_UNKNOWN_SOURCE", "a cited alias does not exist", "cite listed aliases"),
            (
                "INTERPRETATION_OBSERVATION_SOURCE",
                "an observation rests on something that nobody reported",
                "cite report sources",
            ),
            (
                "INTERPRETATION_EXPECTATION_SOURCE",
                "an expectation rests on no formal expectation",
                "cite expectation sources",
            ),
            ("INTERPRETATION_DESCRIPTION_SOURCE", "a description rests on no project description", "cite P sources"),
            (
                "INTERPRETATION_PROVISIONAL_GAP",
                "a provisional gap lacks one of its two sides",
                "cite both sides, or say null",
            ),
            (
                "INTERPRETATION_UNKNOWN_ENTITY",
                "a relevant entity is not one of the case, or stands twice",
                "use listed entities once",
            ),
            ("INTERPRETATION_ENTITY_MISSING", "a selected entity is not retained", "add it to relevant_entities"),
            ("INTERPRETATION_ENTITY_PROVENANCE", "a selected entity lacks its mention or evidence", "cite both"),
            (
                "INTERPRETATION_ENTITY_NOT_RETAINED",
                "a selected entity is missing, or lacks its own alias or its mention",
                "add it to relevant_entities, and cite both",
            ),
            (
                "INTERPRETATION_NAME_BINDING",
                "a named entity does not cite a fact of its name",
                "cite one of its name facts",
            ),
            (
                "INTERPRETATION_UNBOUND_REASON",
                "an entity without a name has a reason of its own",
                "use the required reason",
            ),
            ("INTERPRETATION_IDENTITY_MISSING", "an unresolved identity is not retained", "cite it in unknowns"),
        ),
        *_rows(
            SettingsError,
            1,
            ("OUTPUT_WRITE", "the answer cannot be written to standard output", "make room, and repeat the command"),
            ("BUDGET_REACHED", "a budget is reached", "raise it and repeat the command"),
            (
                "BINDING_CHANGED",
                "the settings differ from what the unfinished case froze",
                "put them back, or `casebound revise CASE` asks anew under those at hand",
            ),
            (
                "REPLAY_MISSING",
                "no reply is recorded for this request, and nobody else is asked",
                "name the recording of this case, or resolve without one",
            ),
            (
                "REPLAY_MISMATCH",
                "the request is not the one whose reply is recorded, and nobody else is asked",
                "put back what differs, or record the case anew",
            ),
            ("RETRY_LATER", "the case may not go on yet", "repeat the command after the time that is named"),
            ("RESUME_REFUSED", "the case cannot be resumed", "see its state with `casebound show CASE`"),
            ("REVISE_REFUSED", "the case cannot be revised", "see its state with `casebound show CASE`"),
        ),
        *_rows(
            IntegrityError,
            1,
            ("STORE_MISSING", "a file of the package is missing", "restore it from a copy"),
            ("STORE_DIGEST", "a file of the package is not what its digest says", "restore it from a copy"),
            ("STORE_JSON", "a file of the package is not the canonical JSON of its format", "restore it from a copy"),
            (
                "STORE_CONFLICT",
                "a file exists with other content, and files are created once",
                "look at the package with `casebound verify`",
            ),
            (
                "STORE_VERSION",
                "the package has a format that this release does not know",
                "use a newer release of casebound",
            ),
            ("VERIFY_DERIVED", "a file is not what follows from the files before it", "restore it from a copy"),
            ("VERIFY_BINDING", "a field does not bind what it must bind", "restore the file from a copy"),
            ("VERIFY_FAILED", "what should follow from a file cannot be derived", "restore the package from a copy"),
            ("VERIFY_EXTRA", "a file stands where none may stand", "move it out of the package"),
        ),
        *_rows(
            IntegrityError,
            1,
            (
                "INDEX_VERSION",
                "the index is of another release",
                "`casebound reindex` makes it again from the cases",
            ),
            (
                "INDEX_BROKEN",
                "the index of the workspace does not hold",
                "`casebound reindex` makes it again from the cases",
            ),
            (
                "INDEX_FOREIGN",
                "the index is another workspace's",
                "name a database of its own in [workspace]; `casebound reindex` takes this one over",
            ),
        ),
        *_rows(
            PluginError,
            1,
            (
                "PLUGIN_MISSING",
                "a plugin that the case needs is not installed",
                "install the distribution that is named",
            ),
            ("PLUGIN_BROKEN", "a plugin failed to load", "see `casebound plugins`, or uninstall it"),
        ),
        *_rows(
            PluginError,
            2,
            ("PLUGIN_CLASH", "two plugins offer the same name", "uninstall one of them, or pin with [project] plugins"),
            ("PLUGIN_OFFER", "a plugin offers something that does not hold", "update or uninstall it"),
        ),
        *_rows(
            ContractError,
            1,
            ("CONTRACT_JSON", "a value has no canonical JSON form", "report this as a bug"),
            ("CONTRACT_BROKEN", "a promise between parts of casebound is broken", "report this as a bug"),
        ),
    ]
)
