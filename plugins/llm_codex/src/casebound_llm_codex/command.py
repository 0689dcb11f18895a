"""What Codex is told: arguments, settings, model catalog and environment of one call. Pure; no I/O, no key.

Rules:
- Everything that is not ours is shut out: user settings, rules, project documents, skills of its own, instructions,
  tools. `--strict-config` makes Codex refuse what it does not know, so that a version with other names fails
  instead of letting something in.
- The model has no tools because its catalog entry is ours and names none. Codex's own entries bring a shell, a patch
  tool, sub-agents and their instructions, which no switch takes away completely.
- No retry of its own: casebound counts attempts, and each is one request as far as Codex lets us say so.
- Settings are TOML; JSON's strings, integers and booleans are TOML's too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from casebound.canonical import canonical_bytes
from casebound.contracts.model_call import ModelRequest

from casebound_llm_codex.program import PATH
from casebound_llm_codex.settings import DEFAULT_BASE_URL, CodexSettings

KEY_VARIABLE = "CASEBOUND_CODEX_KEY"
MOST_PROMPT_CHARACTERS = 1_048_576
_PROVIDER = "casebound"
_IDLE_MARGIN_S = 60
_CONTEXT_WINDOW = 100_000_000
_FEATURES_OFF = (
    "apps",
    "goals",
    "hooks",
    "image_generation",
    "multi_agent",
    "plugins",
    "shell_snapshot",
    "shell_tool",
    "unbounded_connection_retries",
    "unified_exec",
    "view_image",
)
_FIXED_SETTINGS: Mapping[str, object] = {
    "analytics.enabled": False,
    "approval_policy": "never",
    "check_for_update_on_startup": False,
    "developer_instructions": "",
    "include_apps_instructions": False,
    "include_environment_context": False,
    "include_permissions_instructions": False,
    "model_provider": _PROVIDER,
    "model_reasoning_summary": "none",
    "project_doc_max_bytes": 0,
    "skills.bundled.enabled": False,
    "skills.include_instructions": False,
    "tools.experimental_request_user_input": {"enabled": False},
    "web_search": "disabled",
}


@dataclass(frozen=True, slots=True)
class Places:
    """The private folder of one call; `schema` is None where the reply's shape is not enforced."""

    root: Path
    schema: Path | None

    @property
    def home(self) -> Path:
        """The private home."""
        return self.root / "home"

    @property
    def work(self) -> Path:
        """The working folder, which stays empty."""
        return self.root / "work"

    @property
    def temporary(self) -> Path:
        """Its folder for temporary files. The home is not below it, of which Codex would warn in each call."""
        return self.root / "tmp"

    @property
    def catalog(self) -> Path:
        """The file with our entry for the model."""
        return self.root / "models.json"


def arguments(request: ModelRequest, settings: CodexSettings, places: Places) -> list[str]:
    """Return the arguments after the program; the prompt comes by standard input."""
    own = {
        **_FIXED_SETTINGS,
        "model_catalog_json": str(places.catalog),
        f"model_providers.{_PROVIDER}": _server(settings, request.timeout_s),
    }
    if settings.reasoning_effort is not None:
        own["model_reasoning_effort"] = settings.reasoning_effort
    return [
        "exec",
        *("--json", "--ephemeral", "--ignore-user-config", "--ignore-rules", "--strict-config"),
        *("--skip-git-repo-check", "--sandbox=read-only", "--color=never", f"--cd={places.work}"),
        f"--model={request.model}",
        *([f"--output-schema={places.schema}"] if places.schema is not None else []),
        *(f"--disable={feature}" for feature in _FEATURES_OFF),
        *(f"--config={name}={_toml(value)}" for name, value in own.items()),
        "-",
    ]


def environment(settings: CodexSettings, places: Places) -> dict[str, str]:
    """Return every variable that Codex has, but the key. Its home is private even where its CODEX_HOME is not."""
    home = places.home if settings.codex_home == "private" else Path(settings.user_codex_home).expanduser()
    return {"PATH": PATH, "HOME": str(places.home), "CODEX_HOME": str(home), "TMPDIR": str(places.temporary)}


def model_catalog(request: ModelRequest, settings: CodexSettings) -> bytes:
    """Return the catalog that replaces Codex's own: one model without tools, whose base prompt is our system text."""
    effort = settings.reasoning_effort
    entry = {
        "slug": request.model,
        "display_name": request.model,
        "base_instructions": request.system,
        "context_window": _CONTEXT_WINDOW,  # so that Codex never shortens a conversation by itself
        "experimental_supported_tools": [],
        "input_modalities": ["text"],
        "priority": 1,
        "shell_type": "disabled",
        "support_verbosity": False,
        "supported_in_api": True,
        "supported_reasoning_levels": [] if effort is None else [{"effort": effort, "description": effort}],
        "truncation_policy": {"mode": "tokens", "limit": 10_000},
        "visibility": "list",
    }
    return canonical_bytes({"models": [entry]})


def declared_context(settings: CodexSettings, *, machine_settings: bool) -> str:
    """Return what may take part beside our own texts, in words for `native.json`."""
    parts = [f"effort: {settings.reasoning_effort or 'default of the server'}", f"CODEX_HOME: {settings.codex_home}"]
    if settings.codex_home == "user":
        parts.append("of it may take part: global instructions (AGENTS.md), skills that a text names")
    if machine_settings:
        parts.append("settings of the machine may take part: /etc/codex")
    return "; ".join(parts)


def _server(settings: CodexSettings, timeout_s: int) -> dict[str, object]:
    table: dict[str, object] = {
        "name": _PROVIDER,
        "request_max_retries": 0,
        "stream_idle_timeout_ms": (timeout_s + _IDLE_MARGIN_S) * 1000,  # our own limit comes first
        "stream_max_retries": 0,
        "supports_websockets": False,
        "wire_api": "responses",
    }
    if settings.logs_in:
        table["requires_openai_auth"] = True
    if settings.base_url is not None or not settings.logs_in:
        table["base_url"] = settings.base_url or DEFAULT_BASE_URL
    if settings.has_key:
        table["env_key"] = KEY_VARIABLE
    return table


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}={_toml(item)}" for name, item in value.items()) + "}"
    return canonical_bytes(value).decode()
