"""What all artifacts have in common: frozen, strict, canonical JSON on disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from casebound.canonical import canonical_bytes
from casebound.clock import WRITTEN_TIME, format_time, parse_time
from casebound.errors import ContractError

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
SAFE_NAME = r"[A-Za-z0-9][A-Za-z0-9._#-]{0,99}"  # an id that may name a folder, on any system
SafeName = Annotated[str, Field(pattern=f"^{SAFE_NAME}$")]


def _checked_time(text: str) -> str:
    try:
        if format_time(parse_time(text)) == text:
            return text
    except (ValueError, OverflowError):
        if WRITTEN_TIME.fullmatch(text):
            raise ValueError(f"{text} is no moment that a calendar and a clock have") from None
    raise ValueError("a time is written as 2026-11-01T08:00:00.000Z, in UTC")


Time = Annotated[str, AfterValidator(_checked_time)]


class Contract(BaseModel):
    """A frozen value that knows every one of its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, ser_json_inf_nan="constants")

    def to_json(self) -> dict[str, object]:
        """Return the value as plain JSON data; keys that are None stay, so that a format always has all its keys."""
        return self.model_dump(mode="json")


class CamelContract(Contract):
    """A contract whose keys are written in camelCase; in Python they are the usual names."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_alias=True, validate_by_name=True, serialize_by_alias=True
    )


class Artifact(Contract):
    """A contract that is a file of its own; subclasses pin `format` as a Literal."""

    def to_bytes(self) -> bytes:
        """Return the canonical JSON that stands on disk; it is made once, for the artifact never changes."""
        known: bytes | None = self.__dict__.get("_canonical")
        if known is None:
            try:
                value = self.to_json()
            except (ValueError, RecursionError) as exc:
                raise ContractError("CONTRACT_JSON", found="nesting too deep", where=type(self).__name__) from exc
            known = self.__dict__["_canonical"] = canonical_bytes(value)
        return known

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy; its bytes, and whatever else is derived, are its own."""
        copy = super().model_copy(update=update, deep=deep)
        for derived in copy.__dict__.keys() - type(self).model_fields.keys():
            del copy.__dict__[derived]
        return copy

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the artifact of parsed JSON. Raises pydantic's `ValidationError`; `store` turns it into ours."""
        return cls.model_validate(value, strict=False)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | None:
        """Return the artifact whose canonical JSON is exactly `data`; None where there is none, whatever the reason.

        What parses otherwise than it is written (a key that stands twice, a space, "1" for 1, NaN, a key that is left
        out) gives other bytes, and so None.
        """
        try:
            artifact = cls.model_validate_json(data)
            return artifact if artifact.to_bytes() == data else None
        except (ValidationError, ContractError):
            return None
