"""The key of a server: where it comes from, and how it is taken out of what the server says. No HTTP library here."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html.entities import html5

from casebound.errors import SettingsError
from casebound.settings import Secret, read_secret

_SHORTEST_MASKED_KEY = 8
_MASK = b"[key]"
_BACKSLASH = "\\"
_ESCAPES = r"\\{0,15}+"  # JSON inside JSON, four times


def resolve_key(*, env: str | None, cmd: Sequence[str] | None, provider: str) -> Secret | None:
    """Return the key that the settings `[llm.PROVIDER]` point to; None where they point to none.

    Args:
        env: `api_key_env`, the name of a variable.
        cmd: `api_key_cmd`, the command that prints the key.
        provider: the provider's name, for errors.

    Raises:
        SettingsError: the variable or the command gives nothing that a header can carry.
    """
    if env is None and cmd is None:
        return None
    pointer = f"llm.{provider}.{'api_key_env' if env is not None else 'api_key_cmd'}"
    key = read_secret(env=env, cmd=cmd, key=pointer)
    if " " in key.reveal():  # all else that no header can carry has been refused with the secret itself
        found = "a key with a space in it (not shown)"
        raise SettingsError("SETTINGS_VALUE", pointer=pointer, found=found, expected="printable ASCII without spaces")
    return key


class Mask:
    """Takes one key out of what others say; it belongs to what holds the key, and ends with it.

    A key of a few characters is a stand-in for servers without keys; masking it would damage the text of replies.
    """

    def __init__(self, key: Secret | None) -> None:
        text = key.reveal() if key is not None else ""
        self._spellings = None if len(text) < _SHORTEST_MASKED_KEY else _spellings(text)

    def __repr__(self) -> str:
        return "Mask(***)"

    def masked(self, data: bytes) -> bytes:
        """Return `data` with `[key]` in every place where the key stands, in whatever spelling."""
        return data if self._spellings is None else self._spellings.sub(_MASK, data)

    def masked_text(self, text: str) -> str:
        """Return `text`, which may hold bytes as surrogates, as `masked` returns bytes."""
        return self.masked(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _spellings(key: str) -> re.Pattern[bytes]:
    """Return what finds a key as it is, as JSON, HTML and a URL write it (also one inside the other), and in base64.

    Every repetition is bounded, and none can be divided in two ways: a long reply is searched in linear time.
    """
    exact = {key, _in_json(key), _in_json(_in_json(key))}
    found = [_spelt(key), *map(re.escape, sorted(exact, key=len, reverse=True))]
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + key.encode()).decode()
        # Only these signs are the key's alone; the ones at the borders depend on what stands around it.
        found.append(_in_base64(encoded[(8 * offset + 5) // 6 : 8 * (offset + len(key)) // 6]))
    return re.compile("|".join(found).encode())


def _in_json(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _spelt(key: str) -> str:
    """Return the pattern of a key, sign by sign; backslashes in a row are not counted, as every escape doubles them."""
    return "".join(
        rf"(?:{re.escape(_BACKSLASH)}|{_coded(_BACKSLASH)}){{1,{min(16 * len(run), 1024)}}}+"
        if run.startswith(_BACKSLASH)
        else rf"{_ESCAPES}(?:{_coded(run)}|{re.escape(run)})"
        for run in re.findall(r"\\+|[^\\]", key)
    )


def _coded(sign: str) -> str:
    """Return the pattern of the codes of a sign: `u002f` behind a backslash, `%2f`, `&#47;`, `&#x2f;`, `&sol;`."""
    number = ord(sign)
    names = "".join(rf"|{re.escape(name)}" for name, meant in html5.items() if meant == sign and name.endswith(";"))
    entity = rf"&(?:amp;){{0,4}}(?:\#0{{0,6}}{number};|\#[xX]0{{0,6}}(?i:{number:x});{names})"
    return rf"u00(?i:{number:02x})|%(?:25){{0,4}}(?i:{number:02x})|{entity}"


def _in_base64(text: str) -> str:
    """Return the pattern of base64 in both of its alphabets."""
    signs = {sign: rf"{_ESCAPES}(?:[{sign}{other}]|{_coded(sign)})" for sign, other in ("+-", "/_")}
    return "".join(signs.get(sign, sign) for sign in text)
