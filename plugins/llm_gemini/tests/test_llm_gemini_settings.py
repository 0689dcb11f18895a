"""Settings refuse what leaks or cannot work, and the module that registers imports nothing heavy."""

import subprocess
import sys

import casebound_llm_gemini
import pytest
from casebound.errors import SettingsError
from casebound.specs import ProviderSpec
from casebound_llm_gemini.provider import GeminiProvider
from casebound_llm_gemini.settings import GeminiSettings
from pydantic import ValidationError


def test_an_address_that_is_no_url_is_refused_here_too():
    with pytest.raises(ValidationError, match="public host"):
        GeminiSettings(base_url="http://generativelanguage.googleapis.com")


@pytest.mark.parametrize(
    "table",
    [
        {"api_key": "canary-secret"},
        {"base_url": "https://host/?key=canary-secret"},
        {"api_version": "beta"},
        {"api_version": "v1/x"},
        {"api_version": "v1\n"},
        {"schema_field": "both"},
        {"temperature": 2.5},
        {"temperature": float("nan")},
        {"seed": "7"},
        {"seed": 2**31},
        {"thinking_budget": -2},
        {"thinking_budget": 0, "thinking_level": "LOW"},
        {"thinking_level": "low"},
        {"safety": {"HARM_CATEGORY_HARASSMENT": "block none"}},
        {"generation": {"maxOutputTokens": 1}},
        {"generation": {"max_output_tokens": 1}},
        {"generation": {"response_json_schema": {}}},
        {"generation": {"x": [float("inf")]}},
        {"body": {"tools": []}},
        {"body": {"system_instruction": {}}},
        {"body": {"generation_config": {}}},
    ],
)
def test_what_cannot_work_is_refused_without_showing_values(table):
    with pytest.raises(ValidationError) as caught:
        GeminiSettings.model_validate(table)
    assert "canary-secret" not in str(caught.value)


def test_a_table_as_toml_gives_it_is_taken():
    table = {"api_key_cmd": ["pass", "show", "gemini"], "temperature": 0, "generation": {"topK": 40, "top_p": 0.5}}
    settings = GeminiSettings.model_validate(table)
    assert settings.api_key_cmd == ("pass", "show", "gemini")
    with pytest.raises(ValidationError):
        settings.seed = 1


def test_a_missing_key_names_the_place_in_the_settings(monkeypatch):
    monkeypatch.delenv("ODD_KEY", raising=False)
    with pytest.raises(SettingsError) as caught:
        GeminiProvider(GeminiSettings(api_key_env="ODD_KEY"))
    assert caught.value.pointer == "llm.gemini.api_key_env"


def test_the_hook_offers_the_provider():
    (spec,) = casebound_llm_gemini.casebound_providers()
    assert isinstance(spec, ProviderSpec)
    assert (spec.name, spec.resolver) == ("gemini", "model")
    for target, expected in ((spec.settings, GeminiSettings), (spec.factory, GeminiProvider)):
        module, _, name = target.partition(":")
        assert getattr(sys.modules[module], name) is expected


def test_registering_imports_nothing_heavy():
    code = (
        "import sys, casebound_llm_gemini as p; p.casebound_providers(); "
        "print(sorted({'httpx', 'aiohttp', 'pydantic', 'ssl', 'asyncio'} & sys.modules.keys()))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
