"""What all artifacts have in common: frozen, strict, canonical JSON on disk."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from casebound.canonical import canonical_bytes

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
SafeName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._#-]{0,99}$")]


class Contract(BaseModel):
    """A frozen value that knows every one of its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, ser_json_inf_nan="constants")

    def to_json(self) -> dict[str, object]:
        """Return the value as plain JSON data; keys that are None stay, so that a format always has all its keys."""
        return self.model_dump(mode="json")


class Artifact(Contract):
    """A contract that is a file of its own; subclasses pin `format` as a Literal."""

    def to_bytes(self) -> bytes:
        """Return the canonical JSON that stands on disk."""
        return canonical_bytes(self.to_json())

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the artifact of parsed JSON. Raises pydantic's `ValidationError`; `store.load` turns it into ours."""
        return cls.model_validate(value, strict=False)
