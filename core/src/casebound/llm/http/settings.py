"""What a provider's settings need to reach a server over HTTP.

Rules:
- No key ever stands here: `api_key_env` names a variable, `api_key_cmd` a command. Neither: no key is sent.
- An address may be plain http only where nobody else listens: this machine or a private network. That is a listed
  network, a name with a local ending, or a name without a dot, which the local resolver has to know.
- An address of numbers stands in its full form: libraries read the others (`134744072`, `127.1`) each in its own way.
- A value that may hold a secret (an address with userinfo or a query) is refused without being shown.
"""

from __future__ import annotations

import math
import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
_LOCAL_NETWORKS = tuple(
    map(
        ip_network,
        (
            *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
            *("::1/128", "fc00::/7", "fe80::/10"),
        ),
    )
)
_NAME = re.compile(r"[a-z0-9_.-]+")
_NUMBERS_ONLY = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)\.?")  # a name never ends in a number


def checked_base_url(value: str) -> str:
    """Return an address without a slash at its end. Raises `ValueError` for one that must not be used, unshown."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        raise ValueError("this is no URL") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError("a user or a password stands in the URL (not shown); use api_key_env or api_key_cmd")
    if parts.query or parts.fragment or "?" in value or "#" in value:
        raise ValueError("a query or a fragment stands in the URL (not shown); neither belongs there")
    host = (parts.hostname or "").lower()
    address = _address(host)
    signs = value.isascii() and value.isprintable() and " " not in value
    if parts.scheme not in {"http", "https"} or not signs or not (address or _NAME.fullmatch(host)):
        raise ValueError("https://HOST/PATH, or http:// on this machine or in a private network")
    if address is None and _NUMBERS_ONLY.fullmatch(host):
        raise ValueError("a host of numbers only; an address has four of them, from 0 to 255, without zeros in front")
    if parts.scheme == "http" and not _is_local(host, address):
        raise ValueError("http:// sends key and report in the clear to a public host; use https://")
    return value.rstrip("/")


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int | bool)


def _checked_json(value: dict[str, object]) -> dict[str, object]:
    if not _is_json(value):
        raise ValueError("a value has no JSON form (a time, or a number that is not finite)")
    return value


# Further fields of a body: a table of the settings file that JSON can say too.
JsonTable = Annotated[dict[str, object], AfterValidator(_checked_json)]


class KeySettings(BaseModel):
    """What every provider that asks a server has: where the key comes from, and how much is read.

    Attributes:
        api_key_env: name of the variable that holds the key.
        api_key_cmd: command that prints the key; first the program, then its arguments.
        max_body_bytes: most bytes of a reply that are read, after decompression.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    api_key_env: str | None = Field(default=None, min_length=1)
    api_key_cmd: Annotated[tuple[str, ...] | None, Field(strict=False, min_length=1)] = None
    max_body_bytes: int = Field(default=8_388_608, ge=1024)

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        if self.api_key_env is not None and self.api_key_cmd is not None:
            raise ValueError("api_key_env and api_key_cmd exclude each other")
        return self

    @property
    def has_key(self) -> bool:
        """Whether a key is sent."""
        return self.api_key_env is not None or self.api_key_cmd is not None


class HttpSettings(KeySettings):
    """How to reach one server; a provider's own settings inherit from it and give `base_url` its default.

    Attributes:
        base_url: the address in front of every path, without a slash at its end.
        connect_timeout_s: limit for making the connection; the whole call has `[llm] timeout_s`.
        ca_file: certificates to trust instead of the usual ones (PEM).
    """

    base_url: str
    connect_timeout_s: float = Field(default=10, gt=0, allow_inf_nan=False)
    ca_file: str | None = None

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, value: str) -> str:
        return checked_base_url(value)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_local(host: str, address: IPv4Address | IPv6Address | None) -> bool:
    if address is None:
        return "." not in host or host.endswith(_LOCAL_SUFFIXES)
    return any(address in network for network in _LOCAL_NETWORKS)
