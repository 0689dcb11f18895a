"""From bytes to a benchmark's contract: what a program wrote is canonical, what a person filled in is strict JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from casebound.bench.files import read_json
from casebound.contracts.base import Artifact
from casebound.errors import ContractError, SettingsError
from casebound.pointer import first_difference, json_pointer
from casebound.strict_json import parse_json

A = TypeVar("A", bound=Artifact)


def parse_written(data: bytes, model: type[A], code: str, path: Path, where: str | None = None) -> A:
    """Return the artifact whose canonical JSON is exactly `data`.

    Args:
        data: the bytes.
        model: what they must be.
        code: of the error where they are something else.
        path: the file that they stand in.
        where: the line, where they are a part of it.

    Raises:
        SettingsError: `code`, with the pointer; `BENCH_FILE` where it is no strict JSON.
    """
    artifact = model.from_bytes(data)
    if artifact is None:
        pointer, found = _not_canonical(data, parse_filled(data, model, code, path, where))
        raise SettingsError(code, path=str(path), where=where, pointer=pointer or None, found=found)
    return artifact


def _not_canonical(data: bytes, artifact: Artifact) -> tuple[str | None, str]:
    try:
        pointer = first_difference(parse_json(data), parse_json(artifact.to_bytes()))
    except ContractError as exc:
        return exc.pointer, f"{exc.found}, which no canonical JSON has"
    if pointer is None:
        return None, "bytes that are not the canonical form of their value"
    return pointer, "a value that is written otherwise, or missing"


def parse_filled(data: bytes, model: type[A], code: str, path: Path, where: str | None = None) -> A:
    """Return the artifact that strict JSON says; its bytes need not be canonical. Arguments and errors as above."""
    try:
        read_json(path, data)  # pydantic's own reader takes a key that stands twice
    except SettingsError as exc:
        exc.where = where
        raise exc.placed(str(path)) from exc.__cause__
    try:
        return model.model_validate_json(data, by_alias=True, by_name=False)
    except ValidationError as exc:
        error = exc.errors(include_url=False, include_context=False, include_input=False)[0]
        pointer = json_pointer(error["loc"])
        raise SettingsError(code, path=str(path), where=where, pointer=pointer or None, found=error["msg"]) from exc
