"""Secrets that do not show themselves, and texts from which secrets are taken out.

A `Secret` never appears in a log, an exception or a debugger's picture of its owner; only `reveal()` gives it away, and
only to the code that builds a connection or a header. `redact` is for texts that others wrote (tracebacks of plugins).
"""

from __future__ import annotations

import re
from typing import NoReturn
from urllib.parse import parse_qsl, unquote_plus

HIDDEN = "***"

_SECRET_WORDS = ("pass", "pwd", "secret", "token", "apikey", "privatekey", "credential")
_NOT_SECRET = frozenset({"passfile", "passwordfile", "sslpasswordfile"})
_AUTHORITY = re.compile(r"(?P<head>[A-Za-z][\w+.-]*://[^\s:/?#@'\"]*:)(?P<password>[^\s/?#@'\"]+)(?=@)")
_PARAMETER = re.compile(r"(?P<head>[?&;\s\"'](?P<name>[\w%+.-]{2,40})\s*=\s*)(?P<value>[^\s&;'\"]+)")
_BEARER = re.compile(
    r"(?P<head>\b(?:bearer|basic|api-key|x-api-key|x-goog-api-key)\b[\"']?[\s:=]+[\"']?)[\w.~+/=-]{6,}", re.I
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_DIGIT_INSIDE = re.compile(r"\d(?!\d?$)")
_KEY_LIKE = re.compile(r"\b(?:sk|pk|rk|ghp|gho|xox[abp])[-_][\w-]{8,}|\bAIza[\w-]{20,}")


class Secret:
    """A text that no representation shows."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the secret itself; the caller keeps it out of every file, log and message."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({HIDDEN!r})"

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is never written anywhere")


def is_secret_name(name: str) -> bool:
    """Tell whether a key, parameter or variable of this name is likely to hold a secret, however it is spelt."""
    plain = re.sub(r"[^a-z0-9]", "", unquote_plus(name).lower())
    return plain not in _NOT_SECRET and any(word in plain for word in _SECRET_WORDS)


def is_plain_name(text: str) -> bool:
    """Tell whether a text is the name of a variable, and does not look like a secret that was pasted for one."""
    if not _VARIABLE.fullmatch(text) or redact(text) != text:
        return False
    parts = text.split("_")
    # A word has at most so many letters; digits stand at its end, and few of them.
    return all(len(part) <= 24 and (len(part) < 12 or not _DIGIT_INSIDE.search(part)) for part in parts)


def holds_password(url: str, *, database: bool = False) -> bool:
    """Tell whether a URL carries a password, in its user part or in its query, encoded or not.

    Args:
        url: any URL; a text that is none holds no password.
        database: a database URL, in which a password may hold `/`, `?` and `#` without being encoded.
    """
    _, separator, rest = url.partition("://")
    if not separator:
        return False
    authority = rest.rpartition("@")[0] if database else re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[0]
    user, colon, password = authority.partition(":")
    if colon and password and not ("/" in user or "?" in user):
        return True
    query = rest.partition("?")[2]
    return any(_is_secret_pair(key, value) for key, value in _pairs(query))


def _pairs(query: str) -> list[tuple[str, str]]:
    return [pair for part in re.split(r"[&;?#]", query) for pair in parse_qsl(part, keep_blank_values=True)]


def _is_secret_pair(key: str, value: str) -> bool:
    if not value:
        return False
    # A value may be a connection string of its own (`odbc_connect=…;PWD=…`).
    inner = [part.partition("=") for part in re.split(r"[;&\s]", value)]
    return is_secret_name(key) or any(is_secret_name(name) and bool(text) for name, equals, text in inner if equals)


def redact(text: str, known: tuple[str, ...] = ()) -> str:
    """Return `text` without the passwords of URLs, without keys that look like keys, and without `known` values.

    Args:
        text: what somebody else wrote, a traceback for example.
        known: values that must not appear, longest first or not.
    """
    for value in sorted(known, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    text = _AUTHORITY.sub(rf"\g<head>{HIDDEN}", text)
    text = _PARAMETER.sub(_redact_parameter, text)
    text = _BEARER.sub(rf"\g<head>{HIDDEN}", text)
    return _KEY_LIKE.sub(HIDDEN, text)


def _redact_parameter(match: re.Match[str]) -> str:
    return match["head"] + HIDDEN if is_secret_name(match["name"]) else match[0]
