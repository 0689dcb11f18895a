"""casebound.toml → frozen, typed settings: the only reader of settings files and of the environment.

Rules:
- Reading settings opens no database, imports no plugin and resolves no secret; `bind` compares names with plugins.
- One error at a time, naming file, key, what was found and what is accepted; a key that nobody reads comes first,
  because a misspelt key explains the one that is missing. A value that may be a secret is never shown.
- A password never stands in a file, in whatever part of a URL and however it is spelt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli
from pydantic import BaseModel, ValidationError

from casebound.errors import SettingsError
from casebound.processes import run_bounded
from casebound.secret import Secret, holds_password, is_plain_name, is_secret_name, redact
from casebound.settings_errors import dotted, settings_error
from casebound.settings_model import (
    Budget,
    Database,
    Enrichment,
    EntityResolution,
    Intake,
    Interpretation,
    Limits,
    Llm,
    LlmChoice,
    LlmProfile,
    OwnCatalog,
    OwnEnrichment,
    Price,
    Project,
    Protocols,
    Retry,
    Settings,
)

__all__ = [
    "FILE_NAME",
    "Budget",
    "Database",
    "Enrichment",
    "EntityResolution",
    "Intake",
    "Interpretation",
    "Limits",
    "Llm",
    "LlmChoice",
    "LlmProfile",
    "OwnCatalog",
    "OwnEnrichment",
    "Price",
    "Project",
    "Protocols",
    "Retry",
    "Secret",
    "Settings",
    "database_url",
    "find_settings",
    "index_url",
    "load_settings",
    "parse_settings",
    "read_llm_table",
    "read_secret",
    "redact_environment",
]

FILE_NAME = "casebound.toml"
MAX_FILE_BYTES = 1_048_576
COMMAND_TIMEOUT_S = 30
MAX_SECRET_BYTES = 65_536
DATABASE_URLS = (("database", "url"), ("workspace", "index_url"))


# --- files ----------------------------------------------------------------------------------------------------------


def load_settings(path: Path | None = None, *, llm_config: Path | None = None, start: Path | None = None) -> Settings:
    """Read the settings.

    Args:
        path: the file; None: the nearest `casebound.toml` from `start` upwards.
        llm_config: a TOML file whose `[llm]` table replaces that of the settings, as a whole.
        start: where the search begins; None: the current folder.

    Raises:
        SettingsError: the one thing that is wrong, with file, key, what was found and what would be accepted.
    """
    # Absolute from here on, so that every error names a file that is found from any folder.
    path = find_settings(start) if path is None else path.absolute()
    raw = _read_toml(path)
    if llm_config is not None:
        llm_config = llm_config.absolute()
        raw = {**raw, "llm": read_llm_table(llm_config)}
    return parse_settings(raw, path, llm_path=llm_config)


def read_llm_table(path: Path) -> Any:  # noqa: ANN401  # whatever stands there; `parse_settings` validates it
    """Return the `[llm]` table of a TOML file that holds no other.

    Raises:
        SettingsError: the file cannot be read or parsed, or holds something else.
    """
    raw = _read_toml(path)
    extra = sorted(set(raw) - {"llm"})
    if extra:
        raise SettingsError("SETTINGS_KEY", path=str(path), pointer=extra[0], allowed=("llm",))
    if "llm" not in raw:
        raise SettingsError("SETTINGS_VALUE", path=str(path), pointer="llm", found="no [llm] table", allowed=("llm",))
    return raw["llm"]


def find_settings(start: Path | None = None) -> Path:
    """Return the nearest `casebound.toml`, from `start` (None: the current folder) upwards.

    Raises:
        SettingsError: there is none.
    """
    folder = (start or Path.cwd()).resolve()
    for place in (folder, *folder.parents):
        if (place / FILE_NAME).is_file():
            return place / FILE_NAME
    raise SettingsError("SETTINGS_FILE", path=str(folder), found=f"no {FILE_NAME} here or in a folder above")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as exc:
        raise SettingsError("SETTINGS_FILE", path=str(path), found=exc.strerror or type(exc).__name__) from exc
    if len(data) > MAX_FILE_BYTES:
        raise SettingsError("SETTINGS_FILE", path=str(path), found=f"more than {MAX_FILE_BYTES} bytes")
    try:
        return tomli.loads(data.decode("utf-8"))
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise SettingsError(
            "SETTINGS_SYNTAX", path=str(path), where=f"line {line}", found="bytes that are not UTF-8"
        ) from None
    except tomli.TOMLDecodeError as exc:
        place = f"line {exc.lineno}, column {exc.colno}"
        raise SettingsError("SETTINGS_SYNTAX", path=str(path), where=place, found=exc.msg) from None
    except RecursionError:
        raise SettingsError("SETTINGS_SYNTAX", path=str(path), found="tables or arrays nested too deeply") from None


def parse_settings(raw: Mapping[str, Any], path: Path, *, llm_path: Path | None = None) -> Settings:
    """Return the settings that parsed TOML means; `path` and `llm_path` are where it was read from.

    Raises:
        SettingsError: as `load_settings`.
    """
    _refuse_passwords(raw, path, llm_path)
    values = {**raw, "llm": _lift_provider_tables(raw["llm"])} if isinstance(raw.get("llm"), dict) else dict(raw)
    try:
        settings = Settings.model_validate(values)
    except ValidationError as exc:
        raise settings_error(exc, Settings, path=str(path), llm_path=str(llm_path or path)) from None
    settings._path = path.absolute()
    settings._llm_path = llm_path.absolute() if llm_path else None
    return settings


def _lift_provider_tables(llm: Mapping[str, Any]) -> dict[str, Any]:
    """Move `[llm.X]` tables that core does not know into `provider_tables`, in stages and profiles too."""
    lifted = _lift(llm, Llm)
    for group in ("stage", "profile"):
        if isinstance(lifted.get(group), dict):
            lifted[group] = {
                name: _lift(choice, LlmChoice) if isinstance(choice, dict) else choice
                for name, choice in lifted[group].items()
            }
    return lifted


def _lift(table: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    known = set(model.model_fields) - {"provider_tables"}
    tables = {key: value for key, value in table.items() if isinstance(value, dict) and key not in known}
    return {"provider_tables": tables, **{key: value for key, value in table.items() if key not in tables}}


def _refuse_passwords(raw: Mapping[str, Any], path: Path, llm_path: Path | None) -> None:
    """Refuse a URL with a password anywhere, before any other error could show it."""
    open_places: list[tuple[tuple[str | int, ...], object]] = [((), raw)]
    while open_places:
        place, value = open_places.pop()
        if isinstance(value, dict):
            open_places.extend(((*place, key), item) for key, item in value.items())
        elif isinstance(value, list):
            open_places.extend(((*place, index), item) for index, item in enumerate(value))
        elif isinstance(value, str) and holds_password(value, database=place[:2] in DATABASE_URLS):
            file = llm_path if llm_path and place[0] == "llm" else path
            raise SettingsError(
                "SETTINGS_SECRET", path=str(file), pointer=dotted(place), found="a URL with a password in it"
            )


# --- the environment ------------------------------------------------------------------------------------------------


def database_url(settings: Settings) -> Secret:
    """Return the URL of the database; a relative SQLite file starts at the folder of the settings file.

    Raises:
        SettingsError: there is no `[database]`, the variable is not set, or the URL is none.
    """
    database = settings.database
    if database is None:
        raise SettingsError(
            "SETTINGS_VALUE",
            path=str(settings.path),
            pointer="database",
            found="no [database] table",
            expected="url or url_env",
        )
    return _url(settings, database.url, database.url_env, database.key, example="sqlite:///world.db")


def index_url(settings: Settings) -> Secret | None:
    """Return the URL of the index, None where it is the workspace's own file. Raises as `database_url`."""
    table = settings.workspace
    if table.index_url is None and table.index_url_env is None:
        return None
    return _url(settings, table.index_url, table.index_url_env, table.key, example="postgresql://host/cases")


def _url(settings: Settings, url: str | None, url_env: str | None, key: str, *, example: str) -> Secret:
    path = str(settings.path)
    found = url if url is not None else _variable(url_env or "", key, path)
    if not re.match(r"^[a-z][\w+]*://", found):
        raise SettingsError("SETTINGS_VALUE", path=path, pointer=key, expected=f"a database URL such as {example}")
    return Secret(_absolute_sqlite(found, settings.path.parent))


def _absolute_sqlite(url: str, folder: Path) -> str:
    match = re.match(r"^(sqlite(?:\+\w+)?:///)(file:)?(?!/|:memory:)([^?]+)(.*)$", url, re.DOTALL)
    return f"{match[1]}{match[2] or ''}{(folder / match[3]).resolve()}{match[4]}" if match else url


def _variable(name: str, key: str, path: str | None = None) -> str:
    value = os.environ.get(name, "")
    if not value and not is_plain_name(name):
        # Somebody has put the secret itself where its name belongs.
        found = "a text that is no name of a variable, or looks like a secret (not shown)"
        raise SettingsError("SETTINGS_SECRET", path=path, pointer=key, found=found, expected="the name of a variable")
    if not value:
        raise SettingsError(
            "SETTINGS_VARIABLE", path=path, pointer=key, found=f"the variable {name} is not set, or empty"
        )
    return value


def read_secret(
    *, env: str | None, cmd: Sequence[str] | None, key: str, timeout_s: float = COMMAND_TIMEOUT_S
) -> Secret:
    """Return a secret from an environment variable or from a command's standard output.

    One line end at its end is not part of it. The command runs without a shell, in a process group of its own.

    Args:
        env: the variable's name.
        cmd: program and arguments. Exactly one of the two is given.
        key: the dotted settings key, for errors.
        timeout_s: seconds that the command may take.

    Raises:
        SettingsError: not exactly one source, variable not set, command failed, or characters that no header may hold.
            The message shows neither the secret nor what the command printed.
    """
    if (env is None) == (not cmd):
        raise SettingsError("SETTINGS_VALUE", pointer=key, expected="exactly one of a variable's name and a command")
    text = _variable(env, key) if env is not None else _command_output(list(cmd or ()), key, timeout_s)
    text = text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")
    if not text or text != text.strip(" ") or not all(" " <= character <= "~" for character in text):
        found = "nothing" if not text else "characters that a header cannot hold, or spaces around it"
        raise SettingsError("SETTINGS_SECRET", pointer=key, found=found, expected="printable ASCII characters")
    return Secret(text)


def _command_output(command: list[str], key: str, timeout_s: float) -> str:
    try:
        status, output = run_bounded(command, timeout_s=timeout_s, keep_output=True)
    except (OSError, ValueError) as exc:
        found = getattr(exc, "strerror", None) or "it cannot be started"
        raise SettingsError("SETTINGS_COMMAND", pointer=key, found=f"{command[0]}: {found}") from None
    if status != 0 or len(output) > MAX_SECRET_BYTES:
        found = (
            f"no end after {timeout_s:g} seconds" if status is None else f"exit status {status}, {len(output)} bytes"
        )
        raise SettingsError("SETTINGS_COMMAND", pointer=key, found=f"{command[0]}: {found}")
    try:
        return output.decode("ascii")
    except UnicodeDecodeError:
        raise SettingsError("SETTINGS_SECRET", pointer=key, found="characters that a header cannot hold") from None


def redact_environment(text: str) -> str:
    """Return what somebody else wrote without the secrets of the environment and the passwords of URLs."""
    values = (
        value
        for name, value in os.environ.items()
        if len(value) >= 6
        and name not in ("PWD", "OLDPWD")
        and (is_secret_name(name) or name.upper().endswith("KEY") or holds_password(value, database=True))
    )
    return redact(text, tuple(values))
