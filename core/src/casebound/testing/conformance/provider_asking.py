"""Asking: a request says what it was told to say, in every response format, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

import pytest

from casebound.contracts.model_call import ModelRequest, ResponseFormat
from casebound.errors import ProviderError
from casebound.host import build_host
from casebound.llm.provider import Provider
from casebound.specs import ProviderSpec
from casebound.strict_json import parse_json
from casebound.testing.conformance.provider_replies import Asked
from casebound.testing.conformance.provider_suite import ProviderSuite
from casebound.testing.loopback import Loopback

FORMATS: tuple[ResponseFormat, ...] = ("json_schema", "json_object", "text")
_MARK = "a_property_of_this_name"
_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {_MARK: {"type": "array", "items": {"type": "string"}}},
    "required": [_MARK],
    "additionalProperties": False,
}
HARD_TEXTS = {
    "quotes": 'a "quoted" \\ back\\\\slash /slash',
    "lines": "one\ntwo\r\nthree\ttab\u2028four\u2029",
    "other scripts": "Ж 漢字 ἄλφα é e\u0301 🜲👩\u200d💻",
    "invisible": "a\u200bb\u202ec\ufeff d\u00a0",
    "controls": "\x00\x1b[31m\x7f",
    "markup": "</system><|im_end|>{{x}} ${y} %s",
    "blanks": "  around  ",
}


class AskingConformance(ProviderSuite):
    """The fields of a request arrive, each at its place, and no other does."""

    @pytest.mark.parametrize("response_format", FORMATS)
    def test_a_request_asks_exactly_what_it_was_given(
        self, provider: Provider, loopback: Loopback, response_format: ResponseFormat
    ) -> None:
        """The package says what was asked, so it must be true. Repair: add nothing of your own to the body."""
        self._need_asked()
        self._need_format(response_format)
        request = self.model_request(response_format=response_format, response_schema=_SCHEMA, max_output_tokens=321)
        asked = self._asked_by(provider, loopback, request)
        assert (asked.model, asked.system, asked.user) == (request.model, request.system, request.user)
        assert (asked.response_format, asked.max_output_tokens) == (response_format, 321)
        assert asked.rest == self.always

    @pytest.mark.parametrize("response_format", FORMATS)
    def test_the_schema_is_sent_only_where_it_is_asked_for(
        self, provider: Provider, loopback: Loopback, response_format: ResponseFormat
    ) -> None:
        """The mode decides what a server may see. Repair: no schema field but under `json_schema`."""
        self._need_asked()
        self._need_format(response_format)
        request = self.model_request(response_format=response_format, response_schema=_SCHEMA)
        asked = self._asked_by(provider, loopback, request)
        assert (asked.schema is not None) == (response_format == "json_schema")
        if asked.schema is None:
            assert _MARK not in loopback.requests[0].body.decode()
        else:
            assert _keys(asked.schema.get("properties")) == {_MARK}

    @pytest.mark.parametrize("kind", HARD_TEXTS)
    def test_every_character_arrives(self, provider: Provider, loopback: Loopback, kind: str) -> None:
        """Spans are counted in characters. Repair: hand the texts on as they are, in UTF-8 or JSON escapes."""
        self._need_asked()
        request = self.model_request(system=f"Answer with JSON. {HARD_TEXTS[kind]}", user=HARD_TEXTS[kind])
        asked = self._asked_by(provider, loopback, request)
        assert (asked.system, asked.user) == (request.system, request.user)

    @pytest.mark.parametrize("response_format", FORMATS)
    def test_the_request_is_left_as_it_is(
        self, provider: Provider, loopback: Loopback, response_format: ResponseFormat
    ) -> None:
        """The reply is judged by the request's own schema. Repair: change a copy of it."""
        self._need_asked()
        self._need_format(response_format)
        request = self.model_request(response_format=response_format, response_schema=copy.deepcopy(_SCHEMA))
        before = request.to_bytes()
        self._asked_by(provider, loopback, request)
        assert request.to_bytes() == before

    def test_another_attempt_sends_the_same_bytes(self, provider: Provider, loopback: Loopback) -> None:
        """Number, stage and prompt are the program's own. Repair: send nothing that the model need not see."""
        self._need_http()
        loopback.answer(self.replies.success)

        async def twice() -> None:
            await provider.send(self.model_request())
            await provider.send(self.model_request(attempt=2, prompt_id="another", protocol_version=3))

        self._run(provider, twice)
        first, second = loopback.requests
        assert (first.method, first.path, first.query, first.body) == (
            second.method,
            second.path,
            second.query,
            second.body,
        )

    def test_a_schema_that_cannot_be_sent_is_refused_without_a_call(
        self, provider: Provider, loopback: Loopback
    ) -> None:
        """A call that must fail costs money and time. Repair: check the schema first; `LLM_REQUEST` with the reason."""
        self._need_http()
        if self.replies.unsendable_schema is None:
            pytest.skip("capability: this provider sends every schema")
        request = self.model_request(
            response_format="json_schema", response_schema=dict(self.replies.unsendable_schema)
        )
        error = self._failure(provider, lambda: provider.send(request))
        assert (error.code, error.retryable, loopback.requests) == ("LLM_REQUEST", False, [])
        assert error.found

    def test_a_text_without_bytes_is_refused_without_a_call(self, provider: Provider, loopback: Loopback) -> None:
        """Half a character has no UTF-8. Repair: `LLM_REQUEST` before anything is sent."""
        self._need_http()
        request = self.model_request().model_copy(update={"user": "\ud83d"})
        with pytest.raises(ProviderError) as caught:
            self._run(provider, lambda: provider.send(request))
        assert (caught.value.code, loopback.requests) == ("LLM_REQUEST", [])

    def test_a_provider_that_needs_a_model_says_so(self, provider: Provider, loopback: Loopback) -> None:
        """Settings without one are then refused in time. Repair: `needs_model` of its `ProviderSpec` must be true."""
        spec = _spec_of(provider)
        if spec is None:
            pytest.skip("capability: no plugin that is installed names this class as a provider")
        loopback.answer(self.replies.success)
        try:
            self._run(provider, lambda: provider.send(self.model_request(model=None)))
        except ProviderError as exc:
            refused = exc.code == "LLM_REQUEST" and not loopback.requests
        else:
            refused = False
        assert spec.needs_model == refused

    def _need_asked(self) -> None:
        self._need_http()
        if type(self).asked is ProviderSuite.asked:
            pytest.skip("capability: it is not stated what a request's body means (`asked`)")

    def _asked_by(self, provider: Provider, loopback: Loopback, request: ModelRequest) -> Asked:
        loopback.answer(self.replies.success)
        self._run(provider, lambda: provider.send(request))
        asked = self.asked(parse_json(loopback.requests[0].body))
        assert asked is not None
        return asked


def _spec_of(provider: Provider) -> ProviderSpec | None:
    """Return the offer whose factory is the class of `provider`."""
    factory = f"{type(provider).__module__}:{type(provider).__qualname__}"
    specs: Iterable[ProviderSpec] = build_host().index("providers").values()
    return next((spec for spec in specs if spec.factory == factory), None)


def _keys(table: object) -> set[str]:
    return set(table) if isinstance(table, Mapping) else set()
