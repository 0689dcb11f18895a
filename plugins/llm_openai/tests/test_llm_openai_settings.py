"""Settings refuse what leaks or cannot work, and the module that registers imports nothing heavy."""

import subprocess
import sys

import casebound_llm_openai
import pytest
from casebound.errors import SettingsError
from casebound.specs import ProviderSpec
from casebound_llm_openai.provider import OpenAIProvider
from casebound_llm_openai.settings import OpenAISettings
from pydantic import ValidationError


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
    ],
)
def test_an_encrypted_or_local_address_is_taken(url):
    assert OpenAISettings(base_url=url).url == url.rstrip("/") + "/chat/completions"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://api.openai.com/v1", "public host"),
        ("http://8.8.8.8/v1", "public host"),
        ("https://user:canary-secret@host/v1", "not shown"),
        ("https://canary-secret@host/v1", "not shown"),
        ("https://host/v1?key=canary-secret", "not shown"),
        ("https://host/v1#canary-secret", "not shown"),
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
        OpenAISettings(base_url=url)
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
        {"api_key_header": "Bad Header"},
        {"api_key_prefix": "Bearer\n"},
        {"organization": "a\nb"},
        {"path": "chat"},
        {"path": "/chat?key=x"},
        {"temperature": 2.5},
        {"temperature": float("nan")},
        {"seed": "7"},
        {"seed": 2**63},
        {"max_tokens_field": "max_output_tokens"},
        {"max_body_bytes": 0},
        {"connect_timeout_s": 0},
        {"body": {"stream": True}},
        {"body": {"model": "other"}},
        {"body": {"x": [float("inf")]}},
    ],
)
def test_what_cannot_work_is_refused_without_showing_values(table):
    with pytest.raises(ValidationError) as caught:
        OpenAISettings.model_validate(table)
    assert "canary-secret" not in str(caught.value)


def test_a_table_as_toml_gives_it_is_taken():
    table = {"api_key_cmd": ["pass", "show", "openai"], "temperature": 0, "query": {"api-version": "1"}}
    settings = OpenAISettings.model_validate(table)
    assert settings.api_key_cmd == ("pass", "show", "openai")
    with pytest.raises(ValidationError):
        settings.seed = 1


@pytest.mark.parametrize("key", ["", "canary secret", "canary-sécret", "canary\x07secret"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key, monkeypatch):
    monkeypatch.setenv("ODD_KEY", key)
    with pytest.raises(SettingsError) as caught:
        OpenAIProvider(OpenAISettings(api_key_env="ODD_KEY"))
    assert "canary" not in str(caught.value)
    assert caught.value.pointer == "llm.openai.api_key_env"


def test_a_file_of_certificates_that_cannot_be_read_is_refused(tmp_path):
    for path in (tmp_path / "none.pem", tmp_path / "empty.pem"):
        if path.name == "empty.pem":
            path.write_bytes(b"no certificate")
        with pytest.raises(SettingsError, match=r"ca_file"):
            OpenAIProvider(OpenAISettings(ca_file=str(path)))


def test_the_hook_offers_the_provider():
    (spec,) = casebound_llm_openai.casebound_providers()
    assert isinstance(spec, ProviderSpec)
    assert (spec.name, spec.resolver) == ("openai", "model")
    for target, expected in ((spec.settings, OpenAISettings), (spec.factory, OpenAIProvider)):
        module, _, name = target.partition(":")
        assert getattr(sys.modules[module], name) is expected


def test_registering_imports_nothing_heavy():
    code = (
        "import sys, casebound_llm_openai as p; p.casebound_providers(); "
        "print(sorted({'httpx', 'aiohttp', 'pydantic', 'ssl', 'asyncio'} & sys.modules.keys()))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
