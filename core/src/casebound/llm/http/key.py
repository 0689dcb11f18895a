"""The key of a server: where it comes from, and how it is taken out of what the server says. No HTTP library here."""

from __future__ import annotations

import re
from collections.abc import Sequence

from casebound.errors import SettingsError
from casebound.settings import Secret, read_secret

_SHORTEST_MASKED_KEY = 8
_MASK = b"[key]"


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
    """Return what finds a key as it is, as JSON escapes it (a backslash, or `u002f` behind one), and as a URL does."""
    signs = (rf"(?:\\?{re.escape(sign)}|\\u00(?i:{ord(sign):02x})|%(?i:{ord(sign):02x}))" for sign in key)
    return re.compile("".join(signs).encode())
