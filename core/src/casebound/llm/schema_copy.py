"""What all copies of a reply's schema have in common that are made for servers which know only a part of JSON Schema.

Rules:
- The reply is always validated against the full schema afterwards. So a keyword that only narrows may be dropped; one
  whose absence would leave the reply's shape open, or forbid valid replies, is refused before anything is sent, by name
  and place.
- A walk raises `UnfitSchema`; `refusing`, around it, makes of it the error of the server and of the provider.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager

from casebound.errors import ProviderError

LISTS = (list, tuple)  # what a list of a schema may be; as a tuple, for `isinstance` is slow at a union
NARROWING = frozenset(
    {
        "$anchor",
        "$comment",
        "$id",
        "$schema",
        "contains",
        "contentEncoding",
        "contentMediaType",
        "default",
        "deprecated",
        "examples",
        "maxContains",
        "maxLength",
        "maxProperties",
        "minContains",
        "minLength",
        "minProperties",
        "propertyNames",
        "readOnly",
        "uniqueItems",
        "writeOnly",
    }
)


class UnfitSchema(Exception):
    """Something in a schema that a copy cannot say.

    Attributes:
        found: what it is.
        pointer: where it stands in the original; empty for the root.
    """

    def __init__(self, found: str, pointer: str) -> None:
        super().__init__(found, pointer)
        self.found = found
        self.pointer = pointer


@contextmanager
def refusing(*, expected: str, hint: str | None = None) -> Iterator[None]:
    """Turn an `UnfitSchema` from inside into the error that a provider raises; serves as a decorator too.

    Args:
        expected: which schemas the server takes.
        hint: which setting avoids it; None: what the code itself advises.

    Raises:
        ProviderError: `LLM_REQUEST`, naming what does not fit and its place.
    """
    try:
        yield
    except UnfitSchema as exc:
        raise ProviderError(
            "LLM_REQUEST",
            retryable=False,
            found=exc.found,
            where="the reply's schema, before anything was sent",
            pointer=exc.pointer or "the root",
            expected=expected,
            hint=hint,
        ) from None


def check_keywords(schema: Mapping[str, object], pointer: str, *, known: Set[str], dropped: Set[str]) -> None:
    """Refuse a keyword that is neither known nor dropped, and an `allOf` with more than what is dropped.

    Raises:
        UnfitSchema: with the keyword.
    """
    for keyword in schema:
        if keyword not in known and keyword not in dropped:
            raise UnfitSchema(f"the keyword {keyword}", pointer)
    if not all(isinstance(part, dict) and part.keys() <= dropped for part in as_list(schema.get("allOf"))):
        raise UnfitSchema("the keyword allOf with more than what only narrows", pointer)


def as_list(value: object) -> list[object]:
    """Return the list that `value` is, else an empty one."""
    return list(value) if isinstance(value, LISTS) else []
