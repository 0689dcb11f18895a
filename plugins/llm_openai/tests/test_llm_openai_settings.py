"""Settings refuse what leaks or cannot work, and the module that registers imports nothing heavy."""

import re
import subprocess
import sys
from pathlib import Path

import casebound_llm_openai
import pytest
import tomli
from casebound.specs import ProviderSpec
from casebound_llm_openai.provider import OpenAIProvider
from casebound_llm_openai.settings import OpenAISettings
from pydantic import ValidationError


def test_an_address_that_is_no_url_is_refused_here_too():
    with pytest.raises(ValidationError, match="public host"):
        OpenAISettings(base_url="http://api.openai.com/v1")


@pytest.mark.parametrize(
    "table",
    [
        {"api_key": "canary-secret"},
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
        {"body": {"stream": True}},
        {"body": {"model": "other"}},
        {"api": "completions"},
        {"api": "responses", "seed": 1},
        {"api": "responses", "max_tokens_field": "max_tokens"},
        {"api": "responses", "body": {"store": True}},
        {"api": "responses", "body": {"previous_response_id": "resp_1"}},
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


@pytest.mark.parametrize(
    ("table", "endpoint"),
    [
        ({}, "/chat/completions"),
        ({"api": "responses"}, "/responses"),
        ({"api": "responses", "path": "/own"}, "/own"),
        ({"body": {"store": True, "input": 1}}, "/chat/completions"),
    ],
)
def test_the_way_of_asking_has_its_path(table, endpoint):
    assert OpenAISettings.model_validate(table).endpoint == endpoint


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


TABLE = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8").partition("## Servers")[2]
ROWS = [line.split("|") for line in TABLE.splitlines() if line.startswith("| ")]
SERVERS = {row[1].strip(): row[2] for row in ROWS if "`" in row[2]}


@pytest.mark.parametrize("server", sorted(SERVERS))
def test_the_settings_that_the_readme_gives_for_a_server_hold(server):
    written = tomli.loads("\n".join(re.findall(r"`([^`]+)`", SERVERS[server])))
    assert written.pop("response_format", "json_schema") == "json_schema"
    settings = OpenAISettings.model_validate(written)
    assert settings.model_fields_set == written.keys()


def test_the_readme_knows_the_usual_servers():
    assert {"OpenAI", "Azure", "llama.cpp", "vLLM", "Ollama", "LM Studio", "OpenRouter"} <= SERVERS.keys()
