"""Sends one request over HTTP: one call, one deadline, no retry, no redirect, no cookie, no proxy from the environment.

Rules:
- What is the same for every call is made once: between two calls only the path and the body differ.
- The key is revealed to one place only, at the moment of sending. An exception of a library holds the request with its
  headers, so none is chained to what is raised here; what matters of it is in our own error.
- Where a server echoes the key, it is masked before anyone stores the bytes.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

import aiohttp

from casebound.canonical import sent_bytes
from casebound.clock import Clock, SystemClock
from casebound.contracts.model_call import NativeReply
from casebound.errors import ProviderError, SettingsError
from casebound.llm.http.failure import shown
from casebound.llm.http.key import Mask, resolve_key
from casebound.llm.http.settings import HttpSettings
from casebound.llm.provider import unsendable

_KEPT_HEADERS = frozenset({"content-type", "date", "retry-after", "retry-after-ms", "x-request-id", "x-should-retry"})
_USUAL_PORT = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What one vendor's requests have of their own.

    Attributes:
        provider: the provider's name; its settings table is `[llm.NAME]`.
        key_header: the one header that carries the key.
        key_prefix: what stands before the key in it.
        headers: sent with every request; never a key.
        query: sent with every request; never a key.
        kept_headers: headers of a reply that are worth storing, beside those of everybody, in lower case; a name that
            ends in `*` keeps all that begin so.
    """

    provider: str
    key_header: str
    key_prefix: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    kept_headers: tuple[str, ...] = ()

    def keeps(self, header: str) -> bool:
        """Tell whether a header of a reply is stored."""
        own = (header.startswith(name[:-1]) if name.endswith("*") else header == name for name in self.kept_headers)
        return header in _KEPT_HEADERS or any(own)


class HttpSender:
    """Posts JSON to one server. It belongs to the event loop of its first `post`, until it is closed."""

    def __init__(self, settings: HttpSettings, dialect: Dialect, *, clock: Clock | None = None) -> None:
        """Resolve the key; nothing is opened yet.

        Raises:
            SettingsError: the variable or the command of the key gives nothing that a header can carry; `ca_file`
                cannot be read.
        """
        self._settings = settings
        self._dialect = dialect
        self._clock = clock or SystemClock()
        self._key = resolve_key(env=settings.api_key_env, cmd=settings.api_key_cmd, provider=dialect.provider)
        self._mask = Mask(self._key)
        self._tls = _tls_context(settings, dialect.provider)
        self._headers = _headers(settings, dialect)
        self._query = f"?{urlencode(dialect.query)}" if dialect.query else ""
        self._timeout = aiohttp.ClientTimeout(sock_connect=settings.connect_timeout_s)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, path: str, body: Mapping[str, object], *, timeout_s: float) -> NativeReply:
        """Post `body` once to `base_url` + `path` and return what came back, whatever the status.

        Raises:
            ProviderError: `LLM_TIMEOUT`: the whole call took longer than `timeout_s`, or connecting took longer than
                `connect_timeout_s`. `LLM_UNAVAILABLE`: no connection, broken off, too large. `LLM_REQUEST`: the body
                holds a text that has no bytes.
        """
        try:
            sent = sent_bytes(body)
            del body  # its parts are many times as large as its bytes, and would be kept until the reply is there
            async with asyncio.timeout(timeout_s):
                return await self._exchange(path, sent)
        except aiohttp.ClientError as exc:  # before those that it may also be
            failure = _no_reply(exc)
        except TimeoutError:
            failure = _timeout(f"no complete reply within {timeout_s} s")
        except OSError as exc:
            failure = _no_reply(exc)
        except UnicodeEncodeError:
            failure = unsendable("a lone surrogate", "text that has bytes")
        # Raised out here, so that its context does not hold the library's request, and with it the key.
        raise failure

    async def aclose(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _exchange(self, path: str, sent: bytes) -> NativeReply:
        if self._session is None:
            self._session = self._open_session()
        started = self._clock.monotonic()
        async with self._session.post(
            self._settings.base_url + path + self._query,
            headers=self._headers_for(sent),
            data=sent,
            allow_redirects=False,
            timeout=self._timeout,
        ) as response:
            status, headers = response.status, _told(response.raw_headers)
            received = await self._read_body(response.content, headers.get("content-encoding", "identity"))
        elapsed_ms = round((self._clock.monotonic() - started) * 1000)
        kept = {name: self._mask.masked_text(value) for name, value in headers.items() if self._dialect.keeps(name)}
        return NativeReply(status, self._mask.masked(received), kept, elapsed_ms)

    def _headers_for(self, sent: bytes) -> dict[str, str]:
        headers = {**self._headers, "content-length": str(len(sent))}
        if self._key:
            headers[self._dialect.key_header.lower()] = self._dialect.key_prefix + self._key.reveal()
        return headers

    async def _read_body(self, content: aiohttp.StreamReader, encoding: str) -> bytes:
        limit = self._settings.max_body_bytes
        parts = bytearray()
        async for part in content.iter_any():
            parts += part
            if len(parts) > limit:
                raise self._too_large()
        decoded = _decoded(bytes(parts), self._mask.masked_text(encoding), limit)
        if len(decoded) > limit:
            raise self._too_large()
        return decoded

    def _too_large(self) -> ProviderError:
        return ProviderError(
            "LLM_UNAVAILABLE",
            retryable=False,
            where="the reply of the model server",
            found=f"a body of more than {self._settings.max_body_bytes} bytes",
            hint=f"raise max_body_bytes in [llm.{self._dialect.provider}], if such a reply is meant",
        )

    def _open_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            # No limit here: `[limits] in_flight` bounds the calls, and one that waited here would lose its own time.
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )


def _headers(settings: HttpSettings, dialect: Dialect) -> dict[str, str]:
    """Return what every request has, in the order that it is sent in; the key is put in when one leaves."""
    headers = {
        "host": _host(settings.base_url),
        "connection": "keep-alive",
        "accept": "application/json",
        "accept-encoding": "identity",
        "user-agent": f"casebound-llm-{dialect.provider}",
        **{name.lower(): value for name, value in dialect.headers.items()},
    }
    for name, value in (("content-length", ""), ("content-type", "application/json")):
        headers.setdefault(name, value)
    return headers


def _host(base_url: str) -> str:
    """Return an address's host as it is written, without a port that needs no saying."""
    parts = urlsplit(base_url)
    name = parts.netloc[: parts.netloc.find("]") + 1] or parts.hostname or ""
    return name if parts.port in {None, _USUAL_PORT.get(parts.scheme)} else f"{name}:{parts.port}"


def _told(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers of a reply by their names in lower case; one that stands more than once is one list."""
    encoding = _encoding(b"\n".join(part for header in raw for part in header))
    headers: dict[str, str] = {}
    for name, value in ((name.lower().decode(encoding), value.decode(encoding)) for name, value in raw):
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _encoding(data: bytes) -> str:
    """Return the encoding of a reply's headers, for which there is no rule: UTF-8 where they can all be read so."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return "iso-8859-1"
    return "utf-8"


def _tls_context(settings: HttpSettings, provider: str) -> ssl.SSLContext | bool:
    if settings.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as exc:
        raise SettingsError(
            "SETTINGS_VALUE", pointer=f"llm.{provider}.ca_file", path=settings.ca_file, found=type(exc).__name__
        ) from exc


def _decoded(body: bytes, encoding: str, limit: int) -> bytes:
    """Undo a compression that was not asked for, up to one byte past `limit`.

    A library would take a stream that ends too early for a whole one.
    """
    if encoding.lower() == "identity":
        return body
    decoder = zlib.decompressobj(wbits=31)
    try:
        decoded = decoder.decompress(body, limit + 1) if encoding.lower() in {"gzip", "x-gzip"} else b""
    except zlib.error:
        decoded = b""
    if len(decoded) <= limit and (not decoder.eof or decoder.unused_data):
        raise ProviderError(
            "LLM_UNAVAILABLE",
            retryable=True,
            where="the reply of the model server",
            found=f"a body that cannot be decompressed ({shown(encoding)}), though no compression was asked for",
        )
    return decoded


def _no_reply(exc: Exception) -> ProviderError:
    # Of a reply that is no HTTP the cause says what is wrong with it.
    itself = isinstance(exc, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError | aiohttp.InvalidURL)
    cause = exc if itself else exc.__cause__ or exc
    if isinstance(cause, TimeoutError):
        return _timeout("no connection in time")
    detail = f": {cause.strerror or cause}" if isinstance(cause, aiohttp.ClientConnectorError) else ""
    return ProviderError(
        "LLM_UNAVAILABLE",
        retryable=True,
        where="the connection to the model server",
        found=type(cause).__name__ + detail,
    )


def _timeout(found: str) -> ProviderError:
    return ProviderError("LLM_TIMEOUT", retryable=True, where="the connection to the model server", found=found)
