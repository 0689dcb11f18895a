"""A status has its code, a server's wish to wait is read in every form, and what it says is shown safely."""

import pytest
from casebound.contracts.model_call import NativeReply
from casebound.llm.http.failure import LONGEST_WAIT_S, code_of_status, failure_of, retry_after, unreadable
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (301, "LLM_REQUEST"),
        (400, "LLM_REQUEST"),
        (401, "LLM_AUTH"),
        (402, "LLM_QUOTA"),
        (403, "LLM_AUTH"),
        (408, "LLM_TIMEOUT"),
        (409, "LLM_UNAVAILABLE"),
        (418, "LLM_REQUEST"),
        (429, "LLM_RATE_LIMITED"),
        (500, "LLM_UNAVAILABLE"),
        (599, "LLM_UNAVAILABLE"),
    ],
)
def test_each_status_has_its_code(status, code):
    assert code_of_status(status) == code


def test_a_failure_says_what_the_server_said_on_one_printable_line():
    native = NativeReply(status=429, body=b"{}", headers={"retry-after": "3"})
    said = {"status": "BUSY", "code": 429, "empty": "", "odd": [], "message": "a\nb\x1b[31m" + "x" * 5000}
    error = failure_of(native, "LLM_RATE_LIMITED", said=said)
    assert "HTTP 429, status BUSY, code 429: a b\\u{1b}[31mx" in str(error)
    assert len(str(error)) < 800
    assert (error.retryable, error.retry_after) == (True, 3)


def test_a_wish_of_the_bodys_own_counts_only_where_no_header_says_one():
    native = NativeReply(status=429, body=b"{}")
    assert failure_of(native, "LLM_RATE_LIMITED", said={}, wait=7).retry_after == 7
    assert failure_of(native, "LLM_RATE_LIMITED", said={}, wait=-7).retry_after is None
    hinted = NativeReply(status=429, body=b"{}", headers={"retry-after": "2"})
    assert failure_of(hinted, "LLM_RATE_LIMITED", said={}, wait=7).retry_after == 2
    assert failure_of(hinted, "LLM_QUOTA", said={}, wait=7).retry_after is None


def test_a_server_that_forbids_a_retry_is_obeyed():
    native = NativeReply(status=503, body=b"", headers={"x-should-retry": "False", "retry-after": "5"})
    error = failure_of(native, "LLM_UNAVAILABLE", said={})
    assert (error.retryable, error.retry_after) == (False, None)


def test_a_stranger_and_a_redirect_are_hinted_at():
    page = NativeReply(status=502, body=b"<html>\x1b", headers={"content-type": "text/html"})
    error = failure_of(page, "LLM_UNAVAILABLE", said=None)
    assert "7 bytes, text/html, beginning '<html>\\\\u{1b}'" in str(error)
    assert "login page" in error.hint
    assert "base_url" in failure_of(NativeReply(status=308, body=b""), "LLM_REQUEST", said=None).hint
    assert failure_of(page, "LLM_UNAVAILABLE", said=None, hint="wait").hint == "wait"


def test_a_reply_that_is_no_reply_says_what_was_expected():
    error = unreadable(NativeReply(status=200, body=b""), "no JSON", "JSON of a chat")
    assert (error.code, error.retryable, error.expected) == ("LLM_UNAVAILABLE", True, "JSON of a chat")
    assert "an empty body" in str(error)


DATE = "Sun, 01 Nov 2026 08:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "-1", "retry-after": "9"}, 9),
        ({"retry-after": " 20 "}, 20),
        ({"retry-after": "0"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "86401"}, LONGEST_WAIT_S),
        ({"retry-after": "1793520000"}, None),
        ({"retry-after": "Sun, 01 Nov 2026 08:01:00 GMT", "date": DATE}, 60),
        ({"retry-after": "Sunday, 01-Nov-26 08:01:00 GMT", "date": DATE}, 60),
        ({"retry-after": "Sun, 01 Nov 2026 08:01:00 GMT"}, None),
        ({"retry-after": "Sun, 01 Nov 2026 08:01:00", "date": DATE}, None),
        ({"retry-after": "Sun, 99 Nov 2026 08:01:00 GMT", "date": DATE}, None),
    ],
)
def test_the_wish_to_wait_is_read_in_every_form(headers, seconds):
    assert retry_after(headers) == seconds


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "date"]),
        st.text("0123456789.-+e hmsSunNovGT,:", max_size=30) | st.floats().map(str) | st.integers().map(str),
    )
)
def test_any_headers_give_a_wait_of_a_day_at_most_or_none(headers):
    seconds = retry_after(headers)
    assert seconds is None or 0 < seconds <= LONGEST_WAIT_S
