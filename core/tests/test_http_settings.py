"""An address leaks nothing, a key stands in no settings file, and settings import no HTTP library."""

import subprocess
import sys

import pytest
from casebound.llm.http.settings import HttpSettings, JsonTable
from pydantic import TypeAdapter, ValidationError


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "https://api.openai.com/v1/",
        "http://127.0.0.1:8080/v1",
        "http://localhost:11434/v1",
        "http://[::1]:8080/v1",
        "http://10.1.2.3/v1",
        "http://192.168.0.7:8000",
        "http://llama:8080/v1",
        "http://gpu.lan/v1",
        "http://172.31.255.254/v1",
        "http://169.254.1.2/v1",
        "http://[fd00::7]:8080/v1",
        "http://[fe80::1%eth0]:8080/v1",
        "http://[::ffff:10.1.2.3]/v1",
        "https://8.8.8.8/v1",
        "https://[2001:4860:4860::8888]/v1",
    ],
)
def test_an_encrypted_or_local_address_is_taken(url):
    assert HttpSettings(base_url=url).base_url == url.rstrip("/")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://api.openai.com/v1", "public host"),
        ("http://8.8.8.8/v1", "public host"),
        ("https://user:canary-secret@host/v1", "not shown"),
        ("https://canary-secret@host/v1", "not shown"),
        ("https://host/v1?key=canary-secret", "not shown"),
        ("https://host/v1#canary-secret", "not shown"),
        ("http://240.0.0.1/v1", "public host"),
        ("http://255.255.255.255/v1", "public host"),
        ("http://0.0.0.0/v1", "public host"),
        ("http://172.32.0.1/v1", "public host"),
        ("http://192.0.2.1/v1", "public host"),
        ("http://[2001:4860:4860::8888]/v1", "public host"),
        ("http://[::ffff:8.8.8.8]/v1", "public host"),
        ("http://134744072/v1", "numbers only"),
        ("http://0x08080808/v1", "numbers only"),
        ("http://0X8.0x8.2056/v1", "numbers only"),
        ("http://8.8.8.8./v1", "numbers only"),
        ("https://127.1/v1", "numbers only"),
        ("http://8%2e8%2e8%2e8/v1", "https://HOST/PATH"),
        ("http://127.0.0.1%.example.org/v1", "https://HOST/PATH"),
        ("http://ho\\st/v1", "https://HOST/PATH"),
        ("http://ho\tst/v1", "https://HOST/PATH"),
        ("https://host/v1\n", "https://HOST/PATH"),
        ("https://host/\x00v1", "https://HOST/PATH"),
        ("https://host/\x7fv1", "https://HOST/PATH"),
        ("ftp://host/v1", "https://HOST/PATH"),
        ("host/v1", "https://HOST/PATH"),
        ("https://", "https://HOST/PATH"),
        ("https://host:99999/v1", "no URL"),
        ("https://[::1/v1", "no URL"),
        ("", "https://HOST/PATH"),
    ],
)
def test_any_other_address_is_refused_without_showing_it(url, says):
    with pytest.raises(ValidationError) as caught:
        HttpSettings(base_url=url)
    assert says in str(caught.value)
    assert "canary-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        {"api_key": "canary-secret"},
        {"base_urls": "x"},
        {"api_key_env": ""},
        {"api_key_cmd": []},
        {"api_key_env": "A", "api_key_cmd": ["b"]},
        {"max_body_bytes": 0},
        {"connect_timeout_s": 0},
        {"connect_timeout_s": float("inf")},
    ],
)
def test_a_table_that_cannot_work_is_refused_without_showing_it(table):
    with pytest.raises(ValidationError) as caught:
        HttpSettings.model_validate({"base_url": "https://host", **table})
    assert "canary-secret" not in str(caught.value)


def test_the_address_has_no_default_of_its_own():
    with pytest.raises(ValidationError, match="base_url"):
        HttpSettings.model_validate({})


def test_what_has_a_json_form_is_taken():
    table = {"a": [1, 2.5, None, True, "x"]}
    assert TypeAdapter(JsonTable).validate_python(table) == table


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": object()}, {1: 2}])
def test_what_has_no_json_form_is_told(value):
    with pytest.raises(ValidationError, match="no JSON form"):
        TypeAdapter(JsonTable).validate_python({"a": value})


@pytest.mark.parametrize("module", ["settings", "envelope", "failure"])
def test_only_the_sender_imports_an_http_library(module):
    code = f"import sys, casebound.llm.http.{module}; print(sorted({{'httpx', 'aiohttp', 'ssl'}} & sys.modules.keys()))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
