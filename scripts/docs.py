"""Write what is generated below `docs/reference` from the code: codes, hooks, settings, commands, schemas.

usage: docs.py [--check]     --check writes nothing, lists what is stale, and exits 1 if anything is

Generated files are never edited by hand. A published schema never changes: a new shape is a new version.
"""

from __future__ import annotations

import inspect
import json
import sys
from importlib import import_module, resources
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

import click
from casebound import contracts, hookspecs
from casebound.cli.program import HOMES, program
from casebound.contracts.base import Artifact
from casebound.errors import CODES
from casebound.settings_model import Settings
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
NOTE = "<!-- Written by scripts/docs.py; `make docs` writes it again. -->\n"


def codes_page() -> str:
    """Return the table of codes."""
    lines = [
        "# Codes",
        "",
        "Every error that casebound raises on purpose has one of these. Codes are never renamed and never reused.",
        "",
        "| code | what happened | what to do | exit | class |",
        "|---|---|---|---|---|",
    ]
    for name in sorted(CODES):
        row = CODES[name]
        cells = (f"`{name}`", row.summary, row.hint, str(row.exit_status), f"`{row.error}`")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return NOTE + "\n".join(lines) + "\n"


def hooks_page() -> str:
    """Return the hooks with their signatures and docstrings, in the order of the page they stand on."""
    parts = ["# Hooks", "", inspect.getdoc(hookspecs) or ""]
    found = [value for name, value in vars(hookspecs).items() if name.startswith("casebound_") and callable(value)]
    for hook in sorted(found, key=lambda function: function.__code__.co_firstlineno):
        signature = f"{hook.__name__}{inspect.signature(hook)}".replace("'", "")
        parts += ["", f"## {hook.__name__}", "", f"`{signature}`", "", "```text", inspect.getdoc(hook) or "", "```"]
    return NOTE + "\n".join(parts) + "\n"


def settings_page() -> str:
    """Return every key of `casebound.toml` with what it takes and its default."""
    parts = [
        "# Settings",
        "",
        "`casebound.toml`: the nearest one upwards, or what `--project-config` names. An unknown key is an error.",
        "`[llm.PROVIDER]` is validated by the provider's own model: see its README.",
    ]
    schema = Settings.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    _settings_tables(parts, Settings, schema, definitions, "")
    return NOTE + "\n".join(parts) + "\n"


def _settings_tables(parts: list[str], model: type[BaseModel], schema: dict, definitions: dict, prefix: str) -> None:
    rows, below = [], []
    for name, field in model.model_fields.items():
        if name == "provider_tables":
            continue
        key = field.alias or name
        inner = _model_of(field.annotation)
        if inner is not None:
            several = "array" in json.dumps(schema["properties"][key])
            named = str(field.annotation).startswith("dict")
            below.append((f"{prefix}{key}{'.NAME' if named else ''}", inner, several and not named))
            continue
        default = "required" if field.is_required() else _shown(field.get_default(call_default_factory=True))
        rows.append(f"| `{key}` | {_kind(schema['properties'][key], definitions)} | {default} |")
    if rows:
        parts += ["", "| key | takes | default |", "|---|---|---|", *rows]
    for key, inner, several in below:
        title = f"[[{key}]]" if several else f"[{key}]"
        parts += ["", f"## `{title}`", "", "```text", inspect.getdoc(inner) or "", "```"]
        _settings_tables(parts, inner, definitions[inner.__name__], definitions, f"{key}.")


def _model_of(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in getattr(annotation, "__args__", ()):
        found = _model_of(part)
        if found is not None:
            return found
    return None


def _kind(schema: dict, definitions: dict) -> str:
    if "anyOf" in schema:
        kinds = [_kind(part, definitions) for part in schema["anyOf"] if part.get("type") != "null"]
        return kinds[0] if kinds else "anything"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"a list of: {_kind(schema.get('items', {}), definitions)}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties") or next(iter(schema.get("patternProperties", {"": {}}).values()))
        return f"a table of: {_kind(values, definitions)}"
    names = {"integer": "whole number", "string": "text"}
    words = [names.get(schema.get("type", ""), "number")]
    words += [
        f"{word} {schema[bound]:.0f}" for word, bound in (("from", "minimum"), ("to", "maximum")) if bound in schema
    ]
    return " ".join(words)


def _shown(value: object) -> str:
    if value in (None, {}, ()) or value is PydanticUndefined:
        return "–"
    return f"`{list(value) if isinstance(value, tuple) else value}`"


def commands_page() -> str:
    """Return the help of the program and of every command, as it prints it 100 columns wide."""
    parts = ["# Commands"]
    root = click.Context(program, info_name="casebound", terminal_width=100)
    parts += ["", "```text", program.get_help(root), "```"]
    for name in HOMES:
        command = program.get_command(root, name)
        assert command is not None
        _command(parts, command, root, name)
    return NOTE + "\n".join(parts) + "\n"


def _command(parts: list[str], command: click.Command, parent: click.Context, name: str) -> None:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=100)
    parts += ["", f"## {context.command_path}", "", "```text", command.get_help(context), "```"]
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            _command(parts, found, context, inner)


def schemas() -> dict[str, str]:
    """Return the JSON Schema of each artifact by file name."""
    pages: dict[str, str] = {}
    for module in _modules(contracts):
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, Artifact)
                and value.__module__ == module.__name__
                and (name := _schema_name(value))
            ):
                schema = value.model_json_schema(mode="serialization")
                schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
                pages[f"schemas/{name}.schema.json"] = (
                    json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
                )
    return pages


def _schema_name(artifact: type[Artifact]) -> str | None:
    """Return the file name of an artifact's schema: of the format that it pins, else one of its own."""
    pinned = artifact.model_fields["format"].default if "format" in artifact.model_fields else None
    return pinned.replace("/", "-") if isinstance(pinned, str) else getattr(artifact, "SCHEMA_NAME", None)


def response_contracts() -> dict[str, str]:
    """Return the published schemas of interpretations by file name; core ships them as they are."""
    folder = resources.files("casebound.protocols") / "contracts"
    return {f"schemas/{path.name}": path.read_text(encoding="utf-8") for path in folder.iterdir()}


def _modules(package: ModuleType) -> list[ModuleType]:
    return [import_module(found.name) for found in walk_packages(package.__path__, f"{package.__name__}.")]


def pages() -> dict[str, str]:
    """Return every generated file by its path below `docs/reference`."""
    texts = {
        "codes.md": codes_page(),
        "hooks.md": hooks_page(),
        "settings.md": settings_page(),
        "commands.md": commands_page(),
    }
    return {**texts, **schemas(), **response_contracts()}


def main(arguments: list[str]) -> int:
    """Write the pages, or list those that are stale."""
    wanted = pages()
    kept = {f"schemas/{path.name}" for path in (REFERENCE / "schemas").glob("*.json")}
    stale = [name for name, text in wanted.items() if not _holds(name, text)] + sorted(kept - set(wanted))
    if "--check" in arguments:
        for name in stale:
            print(f"stale: docs/reference/{name}; run `make docs`")
        return 1 if stale else 0
    for name, text in wanted.items():
        path = REFERENCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in sorted(kept - set(wanted)):
        (REFERENCE / name).unlink()
    return 0


def _holds(name: str, text: str) -> bool:
    path = REFERENCE / name
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
