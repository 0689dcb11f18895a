"""Reading: what a provider makes of the bytes that came back."""

from __future__ import annotations

import pytest

from casebound.contracts.model_call import ModelReply, NativeReply, Usage
from casebound.errors import TRANSIENT, ProviderError
from casebound.llm.provider import Provider
from casebound.testing.conformance.odd_shapes import odd_bodies
from casebound.testing.conformance.provider_replies import CODE_OF_STATUS, DAMAGED_BODIES, RETRY_AFTER_FORMS
from casebound.testing.conformance.provider_suite import ProviderSuite, given, native_of
from casebound.testing.loopback import Loopback, Response


class ReadingConformance(ProviderSuite):
    """Nothing is invented, nothing is lost, and every failure has its code."""

    def test_a_provider_has_the_three_methods(self, provider: Provider) -> None:
        """The engine calls nothing else. Repair: define `send`, `read` and `aclose`."""
        assert isinstance(provider, Provider)

    def test_success_is_read_exactly(self, provider: Provider) -> None:
        """The text is the model's, unchanged. Repair: do not strip, parse or repair it in `read`."""
        reply = provider.read(native_of(self.replies.success))
        assert reply.text == self.replies.text
        assert reply.finish_reason == "stop"
        assert reply.tools == ()

    def test_reading_is_pure_and_repeatable(self, provider: Provider) -> None:
        """`verify` reads stored bytes again. Repair: keep no state, read no clock in `read`."""
        native = native_of(self.replies.success)
        before = (native.status, native.body, dict(native.headers), native.duration_ms)
        assert provider.read(native) == provider.read(native)
        assert before == (native.status, native.body, native.headers, native.duration_ms)

    def test_reported_usage_is_kept(self, provider: Provider) -> None:
        """Costs are counted from it. Repair: map the server's counts to `Usage`."""
        if not self.capabilities.usage:
            pytest.skip("capability: this provider's server reports no usage")
        usage = provider.read(native_of(self.replies.success)).usage
        assert usage.input_tokens is not None
        assert usage.output_tokens is not None
        if self.replies.usage is not None:
            assert usage == self.replies.usage

    def test_request_and_model_are_named_as_reported(self, provider: Provider) -> None:
        """Support asks for the id; another model may have served. Repair: fill `request_id` and `served_model`."""
        if self.replies.request_id is None and self.replies.served_model is None:
            pytest.skip("capability: this provider's server names neither request nor model")
        reply = provider.read(native_of(self.replies.success))
        assert (reply.request_id, reply.served_model) == (self.replies.request_id, self.replies.served_model)

    def test_every_ending_is_told_apart(self, provider: Provider) -> None:
        """What becomes of a reply depends on how it ended. Repair: map each of the server's words, keep the word."""
        if not self.replies.endings:
            pytest.skip("capability: no further endings are stated")
        read = {
            name: provider.read(native_of(reply)).finish_reason for name, (reply, _) in self.replies.endings.items()
        }
        assert read == {name: expected for name, (_, expected) in self.replies.endings.items()}

    def test_unknown_usage_is_absent(self, provider: Provider) -> None:
        """Zero would be a lie that budgets believe. Repair: leave the fields of `Usage` None."""
        reply = provider.read(native_of(given(self.replies.without_usage, "a reply without usage")))
        assert reply.usage == Usage()
        assert reply.text == self.replies.text

    def test_nonsense_usage_is_absent(self, provider: Provider) -> None:
        """A count is a whole number from zero. Repair: check each count before it goes into `Usage`."""
        reply = provider.read(native_of(given(self.replies.nonsense_usage, "a reply with nonsense usage")))
        assert reply.usage == Usage()
        assert reply.text == self.replies.text

    def test_a_refusal_is_a_reply(self, provider: Provider) -> None:
        """It feeds the correction loop, it is no outage. Repair: finish reason `refusal`."""
        assert provider.read(native_of(given(self.replies.refusal, "a refusal"))).finish_reason == "refusal"

    def test_a_cut_reply_says_so(self, provider: Provider) -> None:
        """Cut text may parse by luck. Repair: finish reason `length`."""
        assert provider.read(native_of(given(self.replies.cut_off, "a cut reply"))).finish_reason == "length"

    def test_a_tool_call_is_named(self, provider: Provider) -> None:
        """A reply that uses tools is refused. Repair: fill `tools`."""
        assert provider.read(native_of(given(self.replies.tool_call, "a tool call"))).tools

    def test_no_text_is_empty_text(self, provider: Provider) -> None:
        """Nothing is invented. Repair: text `""`."""
        assert provider.read(native_of(given(self.replies.no_text, "a reply without text"))).text == ""

    def test_every_form_of_nothing_is_empty_text(self, provider: Provider) -> None:
        """Choices may be null, missing, or no list. Repair: look at each level's kind before you go down."""
        if not self.replies.empties:
            pytest.skip("capability: no further empty replies are stated")
        read = {name: provider.read(native_of(reply)).text for name, reply in self.replies.empties.items()}
        assert read == dict.fromkeys(self.replies.empties, "")

    def test_an_error_inside_success_is_an_error(self, provider: Provider) -> None:
        """Routers send errors with HTTP 200. Repair: look for the error before the text."""
        with pytest.raises(ProviderError):
            provider.read(native_of(given(self.replies.error_in_success, "an error inside HTTP 200")))

    def test_an_empty_account_is_not_worth_waiting(self, provider: Provider) -> None:
        """It often has the status of a rate limit. Repair: `LLM_QUOTA`, not retryable."""
        with pytest.raises(ProviderError) as caught:
            provider.read(native_of(given(self.replies.quota, "an empty account")))
        assert (caught.value.code, caught.value.retryable) == ("LLM_QUOTA", False)

    def test_the_vendors_own_words_for_an_error_have_their_codes(self, provider: Provider) -> None:
        """A word may say more than the status. Repair: read it before the status decides."""
        if not self.replies.errors:
            pytest.skip("capability: no further errors are stated")
        read = {name: self._code_of(provider, reply) for name, (reply, _) in self.replies.errors.items()}
        assert read == {name: (code, code in TRANSIENT) for name, (_, code) in self.replies.errors.items()}

    @pytest.mark.parametrize("damage", DAMAGED_BODIES)
    def test_damaged_bytes_are_an_error_or_an_empty_reply(self, provider: Provider, damage: str) -> None:
        """No library's exception leaves, no text is invented. Repair: catch ValueError and RecursionError in `read`."""
        native = NativeReply(status=200, body=DAMAGED_BODIES[damage](self.replies.success.body))
        try:
            outcome = provider.read(native).text
        except ProviderError as error:
            outcome = error.code
        assert outcome in {"", "LLM_UNAVAILABLE"}

    def test_a_value_of_any_kind_in_any_place_is_a_reply_or_an_error(self, provider: Provider) -> None:
        """Servers change, and what fails without a code ends a case for ever. Repair: look at a value's kind first.

        Each value of each reply that is JSON, or lines of JSON, is replaced by one of every other kind.
        """
        for reply in self.replies.all():
            for body in odd_bodies(reply.body):
                native = NativeReply(status=reply.status, body=body, headers=dict(reply.headers))
                try:
                    read: object = provider.read(native)
                except ProviderError:
                    continue
                except Exception as exc:  # noqa: BLE001  # whatever it is, it is no error of ours: that is the finding
                    pytest.fail(f"{type(exc).__name__} of a reply of HTTP {reply.status}: {body[:2000]!r}")
                assert isinstance(read, ModelReply)

    # --- reading what a server says over HTTP -----------------------------------------------------------------------

    @pytest.mark.parametrize("kind", ["text/html", "application/octet-stream", ""])
    def test_the_content_type_is_not_believed(self, provider: Provider, loopback: Loopback, kind: str) -> None:
        """Servers name their JSON as they like. Repair: judge the bytes, not the header."""
        self._need_http()
        loopback.answer(Response(body=self.replies.success.body, headers={"content-type": kind}))
        assert provider.read(self._send(provider)).text == self.replies.text
        loopback.answer(Response(body=b"<html>Log in</html>", headers={"content-type": "application/json"}))
        with pytest.raises(ProviderError) as caught:
            provider.read(self._send(provider))
        assert caught.value.code == "LLM_UNAVAILABLE"

    @pytest.mark.parametrize("status", CODE_OF_STATUS)
    def test_each_status_has_its_code(self, provider: Provider, status: int) -> None:
        """The code decides what becomes of the case. Repair: map the HTTP status as `CODE_OF_STATUS` does."""
        self._need_http()
        with pytest.raises(ProviderError) as caught:
            provider.read(NativeReply(status=status, body=self.replies.error_body))
        code = CODE_OF_STATUS[status]
        assert (caught.value.code, caught.value.retryable) == (code, code in TRANSIENT)

    @pytest.mark.parametrize(
        "body", [b"", b"<html>Bad Gateway</html>", b'{"error":"text"}', b'{"detail":[]}', b"[]", b"\xff"]
    )
    @pytest.mark.parametrize("status", [401, 502])
    def test_any_error_body_is_understood(self, provider: Provider, status: int, body: bytes) -> None:
        """Proxies answer in the server's place. Repair: let the status decide, whatever the body is."""
        self._need_http()
        with pytest.raises(ProviderError) as caught:
            provider.read(NativeReply(status=status, body=body))
        assert caught.value.code == CODE_OF_STATUS[status]

    @pytest.mark.parametrize("form", RETRY_AFTER_FORMS)
    def test_retry_after_is_read_in_all_its_forms(self, provider: Provider, loopback: Loopback, form: str) -> None:
        """The server's wish becomes the retry time; an unusable wish is none. Repair: keep the header in `send`."""
        self._need_http()
        headers, expected = RETRY_AFTER_FORMS[form]
        loopback.answer(Response(status=429, body=self.replies.error_body, headers=headers))
        with pytest.raises(ProviderError) as caught:
            provider.read(self._send(provider))
        assert (caught.value.code, caught.value.retry_after) == ("LLM_RATE_LIMITED", expected)

    def _code_of(self, provider: Provider, reply: Response) -> tuple[str, bool]:
        with pytest.raises(ProviderError) as caught:
            provider.read(native_of(reply))
        return caught.value.code, caught.value.retryable
