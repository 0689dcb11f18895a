"""`[llm.codex]` is strict: what cannot work, or would show a secret, is refused before anything runs."""

import pytest
from casebound_llm_codex.settings import CodexSettings
from pydantic import ValidationError


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({}, "api_key_env or api_key_cmd"),
        ({"api_key_env": "K", "api_key_cmd": ["pass"]}, "exclude each other"),
        ({"api_key_env": "K", "codex_home": "mine"}, "private"),
        ({"api_key_env": "K", "api_key": "sk-1"}, "Extra inputs"),
        ({"api_key_env": "K", "base_url": "http://example.com/v1"}, "in the clear"),
        ({"base_url": "https://user:xyzzy@example.com/v1"}, "not shown"),
        ({"api_key_env": "K", "program": "bin/codex"}, "absolute path"),
        ({"api_key_env": "K", "reasoning_effort": 'low" x="'}, "pattern"),
        ({"api_key_env": "K", "max_body_bytes": "9999"}, "integer"),
    ],
)
def test_what_does_not_hold_is_refused(table, says):
    with pytest.raises(ValidationError, match=says) as caught:
        CodexSettings.model_validate(table)
    assert "xyzzy" not in str(caught.value)


def test_the_settings_are_frozen():
    settings = CodexSettings(api_key_env="K")
    with pytest.raises(ValidationError):
        settings.program = "other"


def test_a_login_needs_neither_key_nor_address():
    assert CodexSettings(codex_home="user").logs_in
    assert not CodexSettings(codex_home="user", api_key_env="K").logs_in
