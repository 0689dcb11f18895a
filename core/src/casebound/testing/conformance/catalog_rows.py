"""What the catalog suite asks a database to hold, and what it must then find: plain Python, a second time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from unicodedata import normalize

from hypothesis import strategies as st

from casebound.research.catalog import CatalogSource
from casebound.specs import Catalog, EnrichmentRule

COLUMNS = ("id", "name", "locale", "note")
CATALOG = Catalog("conformance.host", "host", "hosts", "id", "name", COLUMNS, locale_column="locale")
RULE = EnrichmentRule("conformance.host", "host", "hosts", "id", COLUMNS, "name", ("note",))


@dataclass(frozen=True, slots=True)
class Host:
    """A row of the table `hosts`: four columns of text, no key, nothing unique; locale and note may be null."""

    id: str
    name: str
    locale: str | None = None
    note: str | None = None


class Load(Protocol):
    """Fills the table `hosts` with exactly these rows and opens a source that may read it and no other table."""

    def __call__(
        self, rows: Sequence[Host], *, scan_rows: int = 1_000_000, max_bytes: int = 67_108_864
    ) -> CatalogSource:
        """Return the source; the fixture closes it."""
        ...


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a source can be tried with.

    Attributes:
        holds_nul: the database can hold a NUL in a text.
        most_examples: how many random tables may be tried; less where filling one is slow.
    """

    holds_nul: bool = True
    most_examples: int = 100


def expected(rows: Sequence[Host], term: str, most: int) -> tuple[list[Host], int]:
    """Return what `literal_contains/1` finds, kept rows and their full number: the reference, in ten lines."""

    def simple(text: str) -> str:
        lowered = [sign.lower() if len(sign.lower()) == 1 else sign for sign in normalize("NFC", text)]
        return normalize("NFC", "".join(lowered))

    found = [row for row in rows if simple(term) in simple(row.name)]
    found.sort(key=lambda row: (simple(row.name) != simple(term), len(row.name), row.name, int(row.id)))
    return found[:most], len(found)


_PIECES = [
    *"%_\\/'\"`;[]*?^- .,aAkKsSiIß\t",
    *"ÉéÅåıİſẞΣσςΆάЖжЁёЙйӢ가각か゛が中國豈\U00020122\U0002f803𐐀𐐨😀😁👍🏽‍",
    "e\u0301",
    "E\u0301",
    "\u0301",
    "\u0323",
    "\u0307",
    "\u212a",
    "\u212b",
    "\u037e",
    "\u1fef",
    "\u1e9b\u0323",
    "\u0344",
    "\u00a0",
    "\u200b",
    "\u202e",
    "\uff21",
    "\u1100\u1161",
    "\u0958",
    "\u2126",
    "node",
    "NODE",
]
TEXTS = st.lists(st.sampled_from(_PIECES) | st.characters(codec="utf-8", exclude_characters="\0"), max_size=6).map(
    "".join
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Host], str]:
    """Draw a small table and a text to look up that often occurs in it, in another spelling."""
    names = draw(st.lists(TEXTS, min_size=1, max_size=10))
    rows = [Host(str(number * 7 % 97), name) for number, name in enumerate(names, start=1)]
    base = draw(st.sampled_from(names))
    start, end = sorted((draw(st.integers(0, len(base))), draw(st.integers(0, len(base)))))
    part = base[start:end] or draw(TEXTS) or "a"
    spellings = [part, part.upper(), part.lower(), normalize("NFC", part), normalize("NFD", part)]
    return rows, draw(st.sampled_from(spellings))
