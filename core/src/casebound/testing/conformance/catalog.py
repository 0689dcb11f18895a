"""The suite that every source of catalogs passes, ours and yours.

Subclass `CatalogConformance`, name the class `Test…`, and supply the fixture `load`:

    class TestMySource(CatalogConformance):
        @pytest.fixture
        def load(self, tmp_path):
            def fill(rows, **limits):
                ...  # the table hosts(id, name, locale, note), all text, in a database that the test may change
                return open_source(url, snapshot_id="conformance", tables=["hosts"], **limits)

            return fill

What a database cannot do is declared in `capabilities` and skips visibly.
"""

from __future__ import annotations

import re
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings

from casebound.canonical import digest_of
from casebound.contracts.capture import Capture
from casebound.errors import ResearchError, SettingsError
from casebound.research.catalog import CatalogSource
from casebound.specs import Catalog, EnrichmentRule
from casebound.testing.conformance.catalog_rows import (
    CATALOG,
    COLUMNS,
    RULE,
    Capabilities,
    Host,
    Load,
    expected,
    tables,
)

__all__ = ["Capabilities", "CatalogConformance", "Host", "Load"]

_SIGNS = "_%\\[]*?^'\"`;/-. "
_SPELLINGS = [
    ("node", "NODE"),
    ("УЗЕЛ", "узел"),
    ("ΚΌΜΒΟΣ", "κόμβοσ"),
    ("STRAßE", "straße"),
    ("élan", "E\u0301LAN"),
    ("J\u030c", "\u01f0"),
    ("\u212aernel", "KERNEL"),
    ("\u212bngstr", "ångstr"),
    ("a\u037eb", "A;B"),
    ("a\u1fefb", "a`b"),
    ("\uac00", "\u1100\u1161"),
    ("\uf900\u7248", "\u8c48\u7248"),
    ("\U00010400", "\U00010428"),
]
_STRANGERS = [
    ("elan", "élan"),
    ("strasse", "straße"),
    ("I\u0307", "i"),
    ("ı", "i"),
    ("ſ", "s"),
    ("node", "\uff4eode"),
    ("a b", "a\u00a0b"),
    ("ab", "a\u200bb"),
    ("node ", "node"),
    ("😁", "😀"),
    ("か", "カ"),
    ("中", "国"),
]


class CatalogConformance:
    """What is promised in `casebound.research.catalog.CatalogSource`, test by test."""

    capabilities: ClassVar[Capabilities] = Capabilities()

    # --- what the author supplies -----------------------------------------------------------------------------------

    @pytest.fixture
    def load(self) -> Load:
        """Supply: a function that fills the table `hosts` and opens a source; see `Load`."""
        raise NotImplementedError("override the fixture `load`")

    # --- what a match is --------------------------------------------------------------------------------------------

    @pytest.mark.spec("A-023", "A-059")
    def test_every_sign_matches_only_itself(self, load: Load) -> None:
        """No wildcard, no escape, no expression. Repair: widen such signs in the pre-filter and compare in Python."""
        signs = [*_SIGNS, "x"]
        source = load([Host(str(number), f"a{sign}b") for number, sign in enumerate(signs)])
        for number, sign in enumerate(signs):
            for term in (f"a{sign}b", f"{sign}b", sign):
                assert _ids(_look_up(source, term)) == [str(number)], term

    @pytest.mark.spec("A-023")
    @pytest.mark.parametrize(("name", "term"), [*_SPELLINGS, *((term, name) for name, term in _SPELLINGS)])
    def test_case_and_canonical_form_do_not_count(self, load: Load, name: str, term: str) -> None:
        """One rule in every script. Repair: the database's own collation must not decide; `fold` does."""
        source = load([Host("1", f"x {name} y"), Host("2", "another")])
        assert _ids(_look_up(source, term)) == ["1"]

    @pytest.mark.parametrize(("term", "name"), _STRANGERS)
    def test_accent_width_and_space_count(self, load: Load, term: str, name: str) -> None:
        """What a collation takes for equal is not. Repair: check each row with `fold` again."""
        assert _look_up(load([Host("1", name)]), term).rows == ()

    def test_random_names_give_what_the_reference_gives(self, load: Load) -> None:
        """Same rows, same order, same count as ten lines of Python. Repair: rank and cut in Python, after all rows."""

        @settings(
            max_examples=self.capabilities.most_examples,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        @given(tables())
        def agrees(drawn: tuple[list[Host], str]) -> None:
            rows, term = drawn
            source = load(rows)
            kept, count = expected(rows, term, 3)
            capture = _look_up(source, term, most=3)
            assert capture.rows == tuple((row.id, row.name, None, None) for row in kept)
            assert (capture.matched, capture.truncated) == (count, count > 3)

        agrees()

    @pytest.mark.spec("A-065")
    def test_rows_carry_their_locale(self, load: Load) -> None:
        """A name in another language is found, and says which. Repair: select the locale column."""
        source = load([Host("1", "node", "enUS"), Host("1", "узел", "ruRU")])
        capture = _look_up(source, "узел")
        assert capture.rows == (("1", "узел", "ruRU", None),)
        assert capture.catalog.locale_column == "locale"

    # --- which rows are kept ----------------------------------------------------------------------------------------

    def test_exact_then_shorter_then_name_then_id(self, load: Load) -> None:
        """The order is total and the same everywhere. Repair: no ORDER BY of the database decides."""
        rows = [
            Host("3", "a node"),
            Host("5", "the node b"),
            Host("7", "b node"),
            Host("10", "a node"),
            Host("x", "a node"),
            Host("9", "Node"),
            Host("1", "nodes"),
        ]
        assert _ids(_look_up(load(rows), "node")) == ["9", "1", "3", "10", "x", "7", "5"]

    @pytest.mark.spec("A-053", "A-028")
    def test_more_matches_than_are_kept_is_truncated(self, load: Load) -> None:
        """Nine matches, eight kept. Repair: count matches before cutting."""
        rows = [Host(str(number), f"node {number}") for number in range(9)]
        nine = _look_up(load(rows), "node", most=8)
        assert (len(nine.rows), nine.matched, nine.truncated, nine.limit_met) == (8, 9, True, "max_candidates")
        eight = _look_up(load(rows[:8]), "node", most=8)
        assert (len(eight.rows), eight.matched, eight.truncated, eight.limit_met) == (8, 8, False, None)

    @pytest.mark.spec("A-028", "A-064")
    def test_no_more_rows_are_read_than_allowed(self, load: Load) -> None:
        """What was not read may match too. Repair: set `limit_met`, even where nothing matched."""
        rows = [Host(str(number), "node") for number in range(5)]
        whole = _look_up(load(rows, scan_rows=5), "node")
        assert (len(whole.rows), whole.truncated, whole.limit_met) == (5, False, None)
        cut = _look_up(load(rows, scan_rows=4), "node")
        assert (len(cut.rows), cut.truncated, cut.limit_met) == (4, True, "scan_rows")
        none_found = _look_up(load([Host("1", "nXode"), Host("2", "nYode")], scan_rows=1), "n%ode")
        assert (none_found.rows, none_found.truncated, none_found.limit_met) == ((), True, "scan_rows")

    @pytest.mark.spec("A-028", "A-064")
    def test_no_more_bytes_are_read_than_allowed(self, load: Load) -> None:
        """A table of long texts ends the look-up, not the process. Repair: count bytes row by row."""
        rows = [Host(str(number), "node", "xx", "ж" * 500) for number in range(5)]
        assert _look_up(load(rows, max_bytes=6000), "node").limit_met is None
        cut = _look_up(load(rows, max_bytes=2100), "node")
        assert (len(cut.rows), cut.truncated, cut.limit_met) == (2, True, "max_bytes")

    # --- what a capture says ----------------------------------------------------------------------------------------

    @pytest.mark.spec("A-022", "A-026", "A-058")
    def test_a_term_is_a_bound_value_and_the_statement_is_constant(self, load: Load) -> None:
        """Quotes and semicolons reach the driver as data. Repair: bind the pattern."""
        source = load([Host("1", "x'); DROP TABLE hosts; --")])
        captures = [_look_up(source, term) for term in ("x'); DROP TABLE hosts; --", "node")]
        assert _ids(captures[0]) == ["1"]
        assert captures[0].statement == captures[1].statement
        assert "DROP" not in captures[0].statement
        assert captures[1].parameters[0] == "%node%"
        assert (captures[0].rule, captures[0].order) == ("literal_contains/1", "exact,length,name,id")
        assert captures[0].limits.max_candidates == 8

    @pytest.mark.spec("A-060", "A-063")
    def test_the_statement_is_one_select_of_named_columns(self, load: Load) -> None:
        """No join, no aggregate, no star. Repair: build it with nothing else."""
        source = load([Host("1", "node")])
        rule = source.freeze_rule(RULE)
        for capture in (_look_up(source, "node"), source.entity_rows_all([(rule, "1")], 3)[0]):
            statement = capture.statement.lower()
            assert statement.count("select") == 1
            assert statement.startswith("select ")
            assert statement.count(" from ") + statement.count("\nfrom ") == 1
            for word in (" join ", "count(", "group by", "sum(", "*", "union"):
                assert word not in statement

    @pytest.mark.spec("A-025", "A-066", "A-067")
    def test_a_miss_is_a_capture_that_says_what_it_covers(self, load: Load) -> None:
        """It names catalog, text and snapshot, and asserts nothing beyond. Repair: use `casebound.research.scope`."""
        capture = _look_up(load([Host("1", "node")]), "gone")
        assert (capture.rows, capture.matched, capture.truncated) == ((), 0, False)
        for part in ('"conformance.host"', '"gone"', f'"{capture.binding.snapshot_id}"', "may exist elsewhere"):
            assert part in capture.scope
        assert "not exist" not in capture.scope

    @pytest.mark.spec("A-027")
    def test_captures_carry_the_binding_of_their_source(self, load: Load) -> None:
        """Evidence names the state it was taken from. Repair: bind inside the transaction that reads."""
        source = load([Host("1", "node")])
        binding = source.binding()
        rule = source.freeze_rule(RULE)
        assert binding.snapshot_id
        assert _look_up(source, "node").binding == binding
        assert source.entity_rows_all([(rule, "1")], 3)[0].binding == binding

    @pytest.mark.spec("A-025")
    def test_one_capture_a_search_in_order_and_equal_queries_are_equal_bytes(self, load: Load) -> None:
        """Captures are content-addressed. Repair: no time, no number, no chance in a capture."""
        source = load([Host("1", "node"), Host("2", "host")])
        frozen = source.freeze_catalog(CATALOG)
        captures = source.look_up_all([(frozen, "node"), (frozen, "gone"), (frozen, "node"), (frozen, "host")], 8)
        assert [capture.term for capture in captures] == ["node", "gone", "node", "host"]
        again = source.look_up_all([(frozen, "node")], 8)[0]
        assert len({digest_of(capture.to_bytes()) for capture in (captures[0], captures[2], again)}) == 1
        assert Capture.from_json(captures[0].to_json()) == captures[0]

    def test_invisible_characters_are_flagged_where_they_stand(self, load: Load) -> None:
        """They match literally and are pointed out. Repair: use `casebound.research.flags`."""
        capture = _look_up(load([Host("1", "n\u200bo\u202ede", None, "plain"), Host("2", "no")]), "\u200bo")
        assert [(flag.place, flag.characters) for flag in capture.flags] == [
            ("/term", ("U+200B",)),
            ("/rows/0/1", ("U+200B", "U+202E")),
        ]

    # --- what is refused --------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(("term", "named"), [("a\0b", "U+0000"), ("a\ud83d", "U+D83D"), ("", "empty")])
    def test_a_text_that_no_database_takes_is_refused_by_name(self, load: Load, term: str, named: str) -> None:
        """Nothing is asked then. Repair: `check_term` before the first query."""
        source = load([Host("1", "ab")])
        frozen = source.freeze_catalog(CATALOG)
        with pytest.raises(SettingsError, match=re.escape(named)) as refused:
            source.look_up_all([(frozen, "ab"), (frozen, term)], 8)
        assert refused.value.code == "CATALOG_TERM"
        with pytest.raises(SettingsError, match=re.escape(named)):
            source.entity_rows_all([(source.freeze_rule(RULE), term)], 8)

    def test_a_matching_name_with_nul_is_refused_by_name(self, load: Load) -> None:
        """It is neither cut at the NUL nor passed on. Repair: check names that match."""
        if not self.capabilities.holds_nul:
            pytest.skip("capability: this database cannot hold a NUL")
        source = load([Host("1", "fine one"), Host("22", "fine \0 two")])
        for term in ("fine", "two"):
            with pytest.raises(ResearchError, match="id 22") as refused:
                _look_up(source, term)
            assert refused.value.code == "RESEARCH_UNAVAILABLE"
            assert "U+0000" in str(refused.value)
        assert _ids(_look_up(source, "one")) == ["1"]

    @pytest.mark.spec("A-024")
    def test_a_table_outside_the_allowlist_is_not_read(self, load: Load) -> None:
        """Neither when frozen nor from a frozen input that somebody changed. Repair: check at both places."""
        source = load([Host("1", "node")])
        other = Catalog("conformance.user", "user", "users", "id", "name", ("id", "name"))
        with pytest.raises(SettingsError) as refused:
            source.freeze_catalog(other)
        assert refused.value.code == "SETTINGS_TABLE"
        forged = source.freeze_catalog(CATALOG).model_copy(update={"table": "users"})
        with pytest.raises(SettingsError):
            source.look_up_all([(forged, "node")], 8)

    def test_columns_are_those_that_the_table_has(self, load: Load) -> None:
        """A preset gives way, an operator's catalog must be exact; spelling is the table's. Repair: ask the table."""
        source = load([Host("1", "node")])
        wanted = ("ID", "Name", "rack")
        preset = Catalog("conformance.host", "host", "hosts", "ID", "NAME", wanted, "tongue", preset=True)
        frozen = source.freeze_catalog(preset)
        assert (frozen.columns, frozen.id_column, frozen.locale_column) == (("id", "name"), "id", None)
        exact = Catalog("own", "host", "hosts", "id", "name", wanted)
        with pytest.raises(SettingsError, match="locale") as refused:
            source.freeze_catalog(exact)
        assert (refused.value.code, refused.value.found) == ("SETTINGS_COLUMN", "rack")
        assert refused.value.allowed == COLUMNS
        nameless = Catalog("conformance.host", "host", "hosts", "id", "title", ("id", "title"), preset=True)
        with pytest.raises(SettingsError, match="title"):
            source.freeze_catalog(nameless)

    # --- rows of a typed id -----------------------------------------------------------------------------------------

    def test_an_id_is_compared_exactly(self, load: Load) -> None:
        """No padding, no case, no leading zero. Repair: compare the text of the id again."""
        rows = [Host(entity_id, f"name of {entity_id}") for entity_id in ("7", "7 ", "07", "a", "A", "á", "%")]
        source = load(rows)
        rule = source.freeze_rule(RULE)
        captures = source.entity_rows_all([(rule, row.id) for row in rows], 5)
        assert [capture.rows for capture in captures] == [((row.id, row.name, None, None),) for row in rows]
        assert source.entity_rows_all([(rule, "8")], 5)[0].rows == ()

    def test_rows_of_an_id_are_ordered_by_all_columns_and_cut(self, load: Load) -> None:
        """Which rows are kept does not depend on the database. Repair: sort in Python, null first."""
        rows = [Host("1", "b"), Host("1", "a", "ruRU"), Host("1", "a", "deDE"), Host("1", "a"), Host("2", "a")]
        source = load(rows)
        rule = EnrichmentRule("own", "host", "hosts", "id", ("id", "name", "locale"), "name")
        frozen = source.freeze_rule(rule)
        whole = source.entity_rows_all([(frozen, "1")], 4)[0]
        assert [row[1:] for row in whole.rows] == [("a", None), ("a", "deDE"), ("a", "ruRU"), ("b", None)]
        assert not whole.truncated
        cut = source.entity_rows_all([(frozen, "1")], 3)[0]
        assert (cut.rows, cut.truncated) == (whole.rows[:3], True)


def _look_up(source: CatalogSource, term: str, most: int = 8) -> Capture:
    return source.look_up_all([(source.freeze_catalog(CATALOG), term)], most)[0]


def _ids(capture: Capture) -> list[object]:
    return [row[0] for row in capture.rows]
