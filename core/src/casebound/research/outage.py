"""Why a database did not answer, in our own words.

A driver's message may hold an account or a password; none of it goes on. Only numbers and SQLSTATEs are read.
"""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

from casebound.errors import CaseboundError, ResearchError, SettingsError

_LOGIN = "the server refused the login"
_DENIED = "the account may not read this"
_NO_DATABASE = "the server has no such database"
_NO_SQLITE = "the file is no SQLite database"
_NO_TABLE = "the database has no such table or column"
_CONNECT = "no connection to the server"
_CONNECT_OR_LOGIN = f"{_CONNECT}, or the server refused the login, or has no such database"
_LOST = "the connection to the server was lost"
_TIME = "the time limit was met"
_LOCKED = "the database is locked by another program"
REFUSED = "the database refused the statement"

_MYSQL = {
    **dict.fromkeys((1044, 1045, 1698), _LOGIN),
    **dict.fromkeys((1142, 1143, 1227), _DENIED),
    1049: _NO_DATABASE,
    **dict.fromkeys((1051, 1054, 1146), _NO_TABLE),
    **dict.fromkeys((1040, 1129, 1203, 2002, 2003), _CONNECT),
    **dict.fromkeys((1053, 1927, 2006, 2013, 2055), _LOST),
    **dict.fromkeys((1317, 1969, 3024), _TIME),
    **dict.fromkeys((1205, 1213), _LOCKED),
}
_SQLITE = {
    3: "the file may not be read",
    5: _LOCKED,
    6: _LOCKED,
    8: "the database is read-only",
    9: _TIME,
    10: "the file cannot be read",
    11: "the file is damaged",
    13: "the disk is full",
    14: "the file cannot be opened (a database in WAL mode needs a folder that may be written)",
    23: "the statement is not one that is allowed",
    26: _NO_SQLITE,
}
# Extended codes that say more than the first eight bits do: of writing, flushing, and the file that a WAL needs beside.
_SQLITE_WRITING = dict.fromkeys((778, 1034, 4874), "the file cannot be written; perhaps the disk is full")
_SQLSTATE = {
    "28": _LOGIN,
    "3D": _NO_DATABASE,
    "42501": _DENIED,
    "42P01": _NO_TABLE,
    "42703": _NO_TABLE,
    "08": _CONNECT,
    "57014": _TIME,
    "57": _LOST,
    "55": _LOCKED,
    "25P03": _TIME,
    "53100": "the server's disk is full",
    "53": _CONNECT,
}


def failure(cause: BaseException, where: str, *, late: bool = False, missing: str | None = None) -> CaseboundError:
    """Return the error for a failed question: an outage, or a database that the settings name and that is not there.

    Args:
        cause: what the library raised.
        where: database and table.
        late: whether the time limit had passed by then; of that, a connection that we cut off ourselves says nothing.
        missing: why there cannot be a database, where that is known.
    """
    reason = missing or reason_of(cause)
    if missing or reason in (_NO_DATABASE, _NO_SQLITE):
        return SettingsError("SETTINGS_DATABASE", where=where, found=reason)
    if late and reason in (_CONNECT, _CONNECT_OR_LOGIN, _LOST, REFUSED):
        reason = _TIME
    return ResearchError("RESEARCH_UNAVAILABLE", where=where, found=reason)


def time_over(where: str) -> ResearchError:
    """Return the error for a question that took longer than `statement_timeout_s`."""
    return ResearchError("RESEARCH_UNAVAILABLE", where=where, found=_TIME)


def reason_of(cause: BaseException) -> str:
    """Return what went wrong, in words that hold nothing of the driver's."""
    if isinstance(cause, DBAPIError):
        return _driver_reason(cause.orig)
    if isinstance(cause, UnicodeError):
        return "a text that is not in the encoding it claims"
    if isinstance(cause, OSError):
        return "the file cannot be read"
    return REFUSED


def _driver_reason(error: BaseException | None) -> str:
    arguments = error.args if error is not None else ()
    if arguments and isinstance(arguments[0], int):  # MariaDB's number says more than the SQLSTATE beside it
        return _MYSQL.get(arguments[0], REFUSED)
    number = getattr(error, "sqlite_errorcode", None)
    if isinstance(number, int):
        return _SQLITE_WRITING.get(number) or _SQLITE.get(number & 0xFF, REFUSED)
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        return _SQLSTATE.get(state) or _SQLSTATE.get(state[:2], REFUSED)
    module = type(error).__module__
    if module.startswith("psycopg"):
        return _CONNECT_OR_LOGIN  # a connection that fails while it is made carries no SQLSTATE
    if module.startswith("sqlite3"):
        return "a text that is not valid UTF-8"  # the only error of the module's own while rows are read
    return REFUSED
