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
import re
import ssl
import zlib
from collections.abc import Generator
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy

import aiohttp
import httpx
from casebound.clock import Clock, SystemClock
from casebound.contracts.model_call import ModelReply, ModelRequest, NativeReply
from casebound.errors import ProviderError, SettingsError
from casebound.settings import Secret, read_secret
from httpx_aiohttp import AiohttpTransport

from casebound_llm_openai.failure import shown
from casebound_llm_openai.settings import OpenAISettings
from casebound_llm_openai.wire import read_reply, request_body

MOST_CONNECTIONS = 128
_KEPT_HEADERS = frozenset(
    {
        "content-type",
        "date",
        "openai-processing-ms",
        "retry-after",
        "retry-after-ms",
        "x-request-id",
        "x-should-retry",
    }
)
_KEPT_PREFIX = "x-ratelimit-"
_SHORTEST_MASKED_KEY = 8
_MASK = b"[key]"


class OpenAIProvider:
    """A `casebound.llm.provider.Provider` for Chat Completions. It belongs to the event loop of its first `send`."""

    def __init__(self, settings: OpenAISettings, *, clock: Clock | None = None) -> None:
        """Resolve the key; nothing is opened yet.

        Raises:
            SettingsError: the variable or the command of the key gives nothing that a header can carry; `ca_file`
                cannot be read.
        """
        self._settings = settings
        self._clock = clock or SystemClock()
        self._key = _resolve_key(settings)
        self._tls = _tls_context(settings)
        self._client: httpx.AsyncClient | None = None

    async def send(self, request: ModelRequest) -> NativeReply:
        """Send the request once and return what came back, whatever the status.

        Raises:
            ProviderError: `LLM_TIMEOUT`: the whole call took longer than `request.timeout_s`, or connecting took
                longer than `connect_timeout_s`. `LLM_UNAVAILABLE`: no connection, broken off, too large. `LLM_REQUEST`:
                the request cannot be sent in this wire format.
        """
        body = request_body(request, self._settings)
        try:
            async with asyncio.timeout(request.timeout_s):
                return await self._exchange(body)
        except TimeoutError:
            failure = _timeout(f"no complete reply within {request.timeout_s} s")
        except (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError, OSError) as exc:
            failure = _no_reply(exc)
        except UnicodeEncodeError:
            failure = ProviderError("LLM_REQUEST", retryable=False, found="a lone surrogate in the request")
        # Raised out here, so that no context of it holds the library's request.
        raise failure

    def read(self, native: NativeReply) -> ModelReply:
        """Return what the native bytes say; see `wire.read_reply`."""
        return read_reply(native)

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _exchange(self, body: dict[str, object]) -> NativeReply:
        started = self._clock.monotonic()
        if self._client is None:
            self._client = self._open_client()
        async with self._client.stream("POST", self._settings.url, json=body) as response:
            received = await self._read_body(response)
        elapsed_ms = round((self._clock.monotonic() - started) * 1000)
        headers = {
            name: value
            for name, value in response.headers.items()
            if name in _KEPT_HEADERS or name.startswith(_KEPT_PREFIX)
        }
        return self._masked(NativeReply(response.status_code, received, headers, elapsed_ms))

    async def _read_body(self, response: httpx.Response) -> bytes:
        limit = self._settings.max_body_bytes
        parts = bytearray()
        async for part in response.aiter_raw():
            parts += part
            if len(parts) > limit:
                raise _too_large(limit)
        return _decoded(bytes(parts), response.headers.get("content-encoding", "identity"), limit)

    def _open_client(self) -> httpx.AsyncClient:
        settings = self._settings
        named = {"OpenAI-Organization": settings.organization, "OpenAI-Project": settings.project}
        return httpx.AsyncClient(
            auth=_KeyAuth(settings.api_key_header, settings.api_key_prefix, self._key) if self._key else None,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            follow_redirects=False,
            headers={
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "User-Agent": "casebound-llm-openai",
                **{name: value for name, value in named.items() if value is not None},
            },
            params=settings.query,
            timeout=httpx.Timeout(None, connect=settings.connect_timeout_s),
            transport=AiohttpTransport(client=self._open_session),
            trust_env=False,
        )

    def _open_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=MOST_CONNECTIONS, ssl=self._tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    def _masked(self, native: NativeReply) -> NativeReply:
        key = self._key.reveal() if self._key else ""
        if len(key) < _SHORTEST_MASKED_KEY:
            return native  # a stand-in for servers without keys; masking it would damage the text of replies
        headers = {name: value.replace(key, _MASK.decode()) for name, value in native.headers.items()}
        return NativeReply(native.status, _spellings(key).sub(_MASK, native.body), headers, native.duration_ms)


class _KeyAuth(httpx.Auth):
    """Puts the key into the one header, when the request leaves."""

    def __init__(self, header: str, prefix: str, key: Secret) -> None:
        self._header = header
        self._prefix = prefix
        self._key = key

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers[self._header] = self._prefix + self._key.reveal()
        yield request


@cache
def _spellings(key: str) -> re.Pattern[bytes]:
    """Return what finds a key as it is, as JSON escapes it (a backslash, or `u002f` behind one), and as a URL does."""
    signs = (rf"(?:\\?{re.escape(sign)}|\\u00(?i:{ord(sign):02x})|%(?i:{ord(sign):02x}))" for sign in key)
    return re.compile("".join(signs).encode())


def _resolve_key(settings: OpenAISettings) -> Secret | None:
    if settings.api_key_env is None and settings.api_key_cmd is None:
        return None
    pointer = "llm.openai.api_key_env" if settings.api_key_env is not None else "llm.openai.api_key_cmd"
    key = read_secret(env=settings.api_key_env, cmd=settings.api_key_cmd, key=pointer)
    if " " in key.reveal():  # all else that no header can carry has been refused with the secret itself
        found = "a key with a space in it (not shown)"
        raise SettingsError("SETTINGS_VALUE", pointer=pointer, found=found, expected="printable ASCII without spaces")
    return key


def _tls_context(settings: OpenAISettings) -> ssl.SSLContext | bool:
    if settings.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as exc:
        raise SettingsError(
            "SETTINGS_VALUE", pointer="llm.openai.ca_file", path=settings.ca_file, found=type(exc).__name__
        ) from exc


def _decoded(body: bytes, encoding: str, limit: int) -> bytes:
    """Undo a compression that was not asked for; httpx would take a stream that ends too early for a whole one."""
    if encoding.lower() == "identity":
        return body
    decoder = zlib.decompressobj(wbits=31)
    try:
        decoded = decoder.decompress(body, limit + 1) if encoding.lower() in {"gzip", "x-gzip"} else b""
    except zlib.error:
        decoded = b""
    if len(decoded) > limit:
        raise _too_large(limit)
    if not decoder.eof or decoder.unused_data:
        raise ProviderError(
            "LLM_UNAVAILABLE",
            retryable=True,
            where="the reply of the model server",
            found=f"a body that cannot be decompressed ({shown(encoding)}), though no compression was asked for",
        )
    return decoded


def _too_large(limit: int) -> ProviderError:
    return ProviderError(
        "LLM_UNAVAILABLE",
        retryable=False,
        where="the reply of the model server",
        found=f"a body of more than {limit} bytes",
        hint="raise max_body_bytes in [llm.openai], if such a reply is meant",
    )


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
