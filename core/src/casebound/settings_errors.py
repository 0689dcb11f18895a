"""What pydantic refuses in a settings file, as one error of ours: file, key, what was found, what is accepted.

A value that may be a secret is never shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from difflib import get_close_matches
from typing import get_args

from pydantic import BaseModel, ValidationError

from casebound.errors import SettingsError
from casebound.secret import is_secret_name, redact

_KINDS = {
    "a valid tuple": "an array",
    "a valid list": "an array",
    "a valid dictionary or instance of": "a table for",
    "a valid dictionary": "a table",
    "a valid string": "a string",
    "an instance of Decimal": "a number",
}


def settings_error(
    error: ValidationError, model: type[BaseModel], *, path: str, llm_path: str = "", prefix: str = ""
) -> SettingsError:
    """Return the first thing that pydantic found as one error of ours, without any value that may be a secret.

    Args:
        error: what pydantic raised.
        model: the model that refused.
        path: the file; `llm_path` is used for keys below `llm`.
        llm_path: where the `[llm]` table came from, if elsewhere.
        prefix: the dotted key of the table that `model` validated.
    """
    details = error.errors(include_url=False, include_context=True)
    first = min(details, key=lambda detail: detail["type"] != "extra_forbidden")
    place = tuple(part for part in first["loc"] if part not in ("provider_tables", "[key]"))
    pointer = dotted(place, prefix)
    file = llm_path if llm_path and pointer.startswith("llm") else path
    if first["type"] == "extra_forbidden":
        table = _table_at(model, first["loc"][:-1])
        keys = sorted((field.alias or name) for name, field in table.model_fields.items() if name != "provider_tables")
        close = get_close_matches(str(first["loc"][-1]), keys, n=1)
        hint = f"did you mean {close[0]}?" if close else None
        # Which providers there are is known to the plugins alone.
        providers = [f"the table [{dotted(place[:-1], prefix)}.PROVIDER] of an installed provider"]
        allowed = [*keys, *(providers if "provider_tables" in table.model_fields else ())]
        return SettingsError("SETTINGS_KEY", path=file, pointer=pointer, allowed=allowed, hint=hint)
    if first["type"] == "missing":
        return SettingsError(
            "SETTINGS_VALUE", path=file, pointer=pointer, found="nothing", expected="a value: this key is required"
        )
    expected = str(first.get("ctx", {}).get("error", first["msg"])).replace("Input should be ", "")
    for foreign, own in _KINDS.items():
        expected = expected.replace(foreign, own)
    hint = None
    if pointer.startswith("entity_resolution.catalogs") and isinstance(first["input"], dict):
        hint = "did you mean [[entity_resolution.catalog]]? catalogs holds names of presets"
    found = _shown(first["input"], place) if first["type"] != "value_error" else None
    return SettingsError(
        "SETTINGS_VALUE", path=file, pointer=pointer or None, found=found, expected=expected, hint=hint
    )


def dotted(place: Sequence[str | int], prefix: str = "") -> str:
    """Return where a value is, below the table `prefix`, as it is written: `limits.in_flight`, `catalog[0].name`."""
    text = prefix
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _table_at(model: type[BaseModel], place: Sequence[str | int]) -> type[BaseModel]:
    """Return the model of the table at `place`; a name that the operator chose is no field, and leads nowhere else."""
    here = model
    for part in place:
        field = next((field for name, field in here.model_fields.items() if part in (name, field.alias)), None)
        here = (_model_in(field.annotation) if field else None) or here
    return here


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)


def _shown(value: object, place: Sequence[str | int]) -> str:
    kinds = {
        bool: "boolean",
        int: "integer",
        float: "float",
        Decimal: "float",
        str: "string",
        dict: "table",
        list: "array",
        tuple: "array",
    }
    kind = kinds.get(type(value), type(value).__name__)
    secret = any(is_secret_name(str(part)) or str(part).endswith(("key", "url", "_env")) for part in place)
    if (secret and isinstance(value, str)) or isinstance(value, dict | list | tuple):
        return f"a value of type {kind}"
    text = redact(str(value) if isinstance(value, Decimal) else repr(value))
    return f"{text[:80]}{'…' if len(text) > 80 else ''} ({kind})"
