"""What Codex is told: nothing of the user's, no tools, no retry; only our texts."""

import json
from pathlib import Path

import pytest
import tomli
from casebound.testing.scripted import model_request
from casebound_llm_codex.command import KEY_VARIABLE, Places, arguments, declared_context, environment, model_catalog
from casebound_llm_codex.settings import CodexSettings

PLACES = Path("/private/somewhere")
LOCAL = CodexSettings(base_url="http://127.0.0.1:8080/v1")
LOGIN = CodexSettings(codex_home="user")


def told(settings=LOCAL, schema=PLACES / "schema.json", **changes):
    """Return the flags, and the settings as Codex reads them."""
    given = arguments(model_request(**changes), settings, Places(PLACES, schema))
    flags = [argument for argument in given if not argument.startswith("--config=")]
    tables = [argument.removeprefix("--config=") for argument in given if argument.startswith("--config=")]
    return flags, tomli.loads("\n".join(tables))


def server(settings, **changes):
    return told(settings, **changes)[1]["model_providers"]["casebound"]


def test_everything_that_is_not_ours_is_shut_out():
    flags, settings = told()
    assert {"--ephemeral", "--ignore-user-config", "--ignore-rules", "--strict-config", "--sandbox=read-only"} <= set(
        flags
    )
    assert {f"--disable={name}" for name in ("shell_tool", "unified_exec", "multi_agent", "plugins", "hooks")} <= set(
        flags
    )
    assert (settings["approval_policy"], settings["web_search"]) == ("never", "disabled")
    assert settings["analytics"] == {"enabled": False}
    assert settings["check_for_update_on_startup"] is False
    assert settings["skills"] == {"bundled": {"enabled": False}, "include_instructions": False}
    assert (settings["project_doc_max_bytes"], settings["developer_instructions"]) == (0, "")
    assert not [flag for flag in flags if "danger" in flag or "write" in flag]


def test_the_prompt_is_no_argument_and_nothing_goes_through_a_shell():
    flags, _ = told(user='{"task":"plan"}', system="secret of the trade")
    assert (flags[0], flags[-1]) == ("exec", "-")
    assert "plan" not in "".join(flags)
    assert "trade" not in "".join(flags)


def test_a_model_with_a_strange_name_stays_one_argument():
    flags, _ = told(model="--yolo -x")
    assert "--model=--yolo -x" in flags


def test_codex_itself_never_tries_again_and_waits_longer_than_we_do():
    table = server(LOCAL, timeout_s=20)
    assert (table["request_max_retries"], table["stream_max_retries"]) == (0, 0)
    assert table["supports_websockets"] is False
    assert table["stream_idle_timeout_ms"] == 80_000
    assert "--disable=unbounded_connection_retries" in told()[0]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (LOCAL, {"base_url": "http://127.0.0.1:8080/v1"}),
        (CodexSettings(api_key_env="K"), {"base_url": "https://api.openai.com/v1", "env_key": KEY_VARIABLE}),
        (LOGIN, {"requires_openai_auth": True}),
        (
            CodexSettings(codex_home="user", api_key_env="K"),
            {"base_url": "https://api.openai.com/v1", "env_key": KEY_VARIABLE},
        ),
    ],
)
def test_who_is_asked_and_how_we_show_who_we_are(settings, expected):
    table = server(settings)
    assert {key: table[key] for key in ("base_url", "env_key", "requires_openai_auth") if key in table} == expected


def test_the_model_has_no_tools_and_no_base_prompt_but_ours():
    request = model_request(system='Answer "so": {x} Ж')
    (entry,) = json.loads(model_catalog(request, LOCAL))["models"]
    assert (entry["slug"], entry["base_instructions"]) == (request.model, request.system)
    assert (entry["shell_type"], entry["experimental_supported_tools"]) == ("disabled", [])
    assert not [key for key in entry if key.endswith("tool_type") or key in ("tool_mode", "multi_agent_version")]


def test_the_effort_is_sent_where_it_is_set():
    settings = CodexSettings(base_url="http://127.0.0.1/v1", reasoning_effort="high")
    assert told(settings)[1]["model_reasoning_effort"] == "high"
    assert "model_reasoning_effort" not in told()[1]


def test_without_a_schema_none_is_named():
    assert any(flag.startswith("--output-schema=") for flag in told()[0])
    assert not any(flag.startswith("--output-schema") for flag in told(schema=None)[0])


def test_the_environment_is_built_and_the_home_always_private(monkeypatch):
    monkeypatch.setenv("DATABASE_PASSWORD", "hidden")
    private, user = environment(LOCAL, Places(PLACES, None)), environment(LOGIN, Places(PLACES, None))
    assert set(private) == set(user) == {"PATH", "HOME", "CODEX_HOME", "TMPDIR"}
    assert private["CODEX_HOME"] == private["HOME"] == user["HOME"] == str(PLACES / "home")
    assert user["CODEX_HOME"] == str(Path("~/.codex").expanduser())


@pytest.mark.spec("B-116")
def test_what_may_take_part_is_declared_and_never_called_absent():
    assert declared_context(LOCAL, machine_settings=False) == "effort: default of the server; CODEX_HOME: private"
    declared = declared_context(LOGIN, machine_settings=True)
    for part in ("CODEX_HOME: user", "AGENTS.md", "skills", "/etc/codex"):
        assert part in declared
