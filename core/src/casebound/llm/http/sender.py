"""Sends one request over HTTP: one call, one deadline, no retry, no redirect, no cookie, no proxy from the environment.

Rules:
- httpx keeps the interface, aiohttp carries the bytes: with keep-alive limits above some twenty, httpx's own transport
  takes twenty times the CPU for a call.
- The key is revealed to one place only, at the moment of sending. An exception of a library holds the request with its
  headers, so none is chained to what is raised here; what matters of it is in our own error.
- Where a server echoes the key, it is masked before anyone stores the bytes.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Generator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from casebound.clock import Clock, SystemClock
from casebound.contracts.model_call import NativeReply
from casebound.errors import ProviderError, SettingsError
from casebound.llm.http.failure import shown
from casebound.llm.http.key import Mask, resolve_key
from casebound.llm.http.settings import HttpSettings
from casebound.llm.provider import unsendable
from casebound.settings import Secret

# For sessions that the transport would open itself; ours has its own, which verifies. By default it would read all
# certificates of the system for nothing.
_UNUSED_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_KEPT_HEADERS = frozenset({"content-type", "date", "retry-after", "retry-after-ms", "x-request-id", "x-should-retry"})


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
        self._client: httpx.AsyncClient | None = None

    async def post(self, path: str, body: Mapping[str, object], *, timeout_s: float) -> NativeReply:
        """Post `body` once to `base_url` + `path` and return what came back, whatever the status.

        Raises:
            ProviderError: `LLM_TIMEOUT`: the whole call took longer than `timeout_s`, or connecting took longer than
                `connect_timeout_s`. `LLM_UNAVAILABLE`: no connection, broken off, too large. `LLM_REQUEST`: the body
                holds a text that has no bytes.
        """
        request: httpx.Request | None = None
        try:
            request = self._request(path, body)
            del body  # its parts are many times as large as its bytes, and would be kept until the reply is there
            async with asyncio.timeout(timeout_s):
                return await self._exchange(request)
        except TimeoutError:
            failure = _timeout(f"no complete reply within {timeout_s} s")
        except (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError, OSError) as exc:
            failure = _no_reply(exc)
        except UnicodeEncodeError:
            failure = unsendable("a lone surrogate", "text that has bytes")
        # Raised out here, so that neither its context nor this frame holds the library's request, and with it the key.
        del request
        raise failure

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _request(self, path: str, body: Mapping[str, object]) -> httpx.Request:
        return self._opened().build_request("POST", self._settings.base_url + path, json=body)

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = self._open_client()
        return self._client

    async def _exchange(self, request: httpx.Request) -> NativeReply:
        started = self._clock.monotonic()
        async with aclosing(await self._opened().send(request, stream=True)) as response:
            received = await self._read_body(response)
        elapsed_ms = round((self._clock.monotonic() - started) * 1000)
        headers = {name: value for name, value in response.headers.items() if self._dialect.keeps(name)}
        return self._masked(NativeReply(response.status_code, received, headers, elapsed_ms))

    async def _read_body(self, response: httpx.Response) -> bytes:
        limit = self._settings.max_body_bytes
        parts = bytearray()
        async for part in response.aiter_raw():
            parts += part
            if len(parts) > limit:
                raise self._too_large()
        encoding = self._mask.masked_text(response.headers.get("content-encoding", "identity"))
        decoded = _decoded(bytes(parts), encoding, limit)
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

    def _open_client(self) -> httpx.AsyncClient:
        dialect = self._dialect
        return httpx.AsyncClient(
            auth=_KeyAuth(dialect, self._key) if self._key else None,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            follow_redirects=False,
            headers={
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "User-Agent": f"casebound-llm-{dialect.provider}",
                **dialect.headers,
            },
            params=dict(dialect.query),
            timeout=httpx.Timeout(None, connect=self._settings.connect_timeout_s),
            transport=AiohttpTransport(client=self._open_session, verify=_UNUSED_TLS),
            trust_env=False,
        )

    def _open_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            # No limit here: `[limits] in_flight` bounds the calls, and one that waited here would lose its own time.
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    def _masked(self, native: NativeReply) -> NativeReply:
        headers = {name: self._mask.masked_text(value) for name, value in native.headers.items()}
        return NativeReply(native.status, self._mask.masked(native.body), headers, native.duration_ms)


class _KeyAuth(httpx.Auth):
    """Puts the key into the one header, when the request leaves."""

    def __init__(self, dialect: Dialect, key: Secret) -> None:
        self._dialect = dialect
        self._key = key

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers[self._dialect.key_header] = self._dialect.key_prefix + self._key.reveal()
        yield request


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

    httpx would take a stream that ends too early for a whole one.
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
    # The transport calls a server that hangs up a connect timeout; its cause tells the two apart.
    cause = exc.__cause__ or exc
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
