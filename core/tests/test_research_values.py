"""Cells, order, flags, visible text, freezing, bindings."""

import datetime as dt
from decimal import Decimal
from itertools import permutations
from uuid import UUID

import pytest
from casebound.contracts.capture import Binding, CatalogInput, EnrichmentInput, TypedCell
from casebound.errors import ResearchError, SettingsError
from casebound.research.cell import id_order, row_order, size_of, text_of, to_cell
from casebound.research.flags import derive_flags
from casebound.research.freeze import fit_catalog, fit_rule
from casebound.research.matching import Matching, Scan, rows_of_entity
from casebound.research.snapshot import changed
from casebound.specs import Catalog, EnrichmentRule
from casebound.text import peculiar_characters, visible
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, None),
        ("é\0", "é\0"),
        (2**70, TypedCell(t="int", v=str(2**70))),
        (True, TypedCell(t="int", v="1")),
        (0.1, TypedCell(t="dec", v="0.1")),
        (Decimal("1E+3"), TypedCell(t="dec", v="1000")),
        (Decimal("2.50"), TypedCell(t="dec", v="2.50")),
        (b"\x00\xff", TypedCell(t="bytes", v="00ff")),
        (dt.datetime(2026, 1, 2, 3, 4, 5), TypedCell(t="time", v="2026-01-02T03:04:05")),  # noqa: DTZ001  # as drivers give it
        (dt.date(2026, 1, 2), TypedCell(t="time", v="2026-01-02")),
        (dt.timedelta(hours=1), TypedCell(t="time", v="1:00:00")),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_cells(value, cell):
    assert to_cell(value, "table t, column c") == cell


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity"), "\ud800", [1], {}])
def test_a_value_without_exact_form_is_refused_with_its_place(value):
    with pytest.raises(ResearchError) as refused:
        to_cell(value, "table t, column c")
    assert refused.value.code == "RESEARCH_UNAVAILABLE"
    assert refused.value.where == "table t, column c"


def test_ids_and_names_are_text():
    assert [text_of(value, "p") for value in (7, "7", b"7", Decimal("7"), UUID(int=7))][:4] == ["7"] * 4
    for value in (b"\xff", "a\0", "\udc00"):
        with pytest.raises(ResearchError, match="where: p"):
            text_of(value, "p")


def test_numbers_are_ordered_by_value_before_other_ids():
    ids = ["x", "10", "9", "009", "a", "٣", "1" * 50, ""]
    for order in list(permutations(ids))[::997]:
        assert sorted(order, key=id_order) == ["009", "9", "10", "", "1" * 50, "a", "x", "٣"]


CELLS = st.none() | st.text("0a", max_size=3) | st.builds(TypedCell, t=st.just("int"), v=st.sampled_from(["7", "10"]))


@given(st.lists(st.tuples(CELLS, CELLS), max_size=6), st.randoms())
def test_row_order_is_total(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert sorted(rows, key=row_order) == sorted(shuffled, key=row_order)


HOSTS = CatalogInput(
    name="h", entity_type="host", table="t", id_column="id", name_column="name", columns=("name", "id", "x")
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["node", "Node", "a node", "no"]), st.integers(1, 3), st.none() | st.text("ab"))
    ),
    st.randoms(),
)
def test_what_is_kept_does_not_depend_on_the_order_of_rows(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert Matching(HOSTS, "node").best(rows, 2) == Matching(HOSTS, "node").best(shuffled, 2)


def test_rows_without_name_or_id_are_no_entities():
    matching = Matching(HOSTS, "n")
    assert matching.best([(None, 1, None), ("n", None, None), ("n", 2, None)], 8) == (("n", "2", None),)
    assert matching.count == 1


def test_limits_end_a_scan_at_their_boundary():
    rows = [("ab", 1), ("cd", 2), ("ef", 3)]
    assert [size_of(row) for row in rows] == [10, 10, 10]
    assert size_of(("é", b"abc", None)) == 13
    for scan_rows, max_bytes, read, met in [(3, 30, 3, None), (2, 30, 2, "scan_rows"), (3, 29, 2, "max_bytes")]:
        scan = Scan(rows, scan_rows=scan_rows, max_bytes=max_bytes)
        assert (len(list(scan)), scan.limit_met) == (read, met)


def test_rows_that_only_the_database_takes_for_equal_are_dropped():
    rule = EnrichmentInput(name="r", entity_type="host", table="t", column="id", columns=("id", "n"), name_column="n")
    rows = [("7 ", "pad"), ("07", "zero"), (7, "b"), ("7", None), (None, "null"), ("7", "a")]
    assert rows_of_entity(rule, "7", rows, 9) == (("7", None), ("7", "a"), ("7", "b"))


def test_peculiar_characters_are_named_once_in_order():
    assert peculiar_characters("a\u202eb\u200bc\u202e\uff21 é 中 가 -") == ("U+202E", "U+200B", "U+FF21")
    assert visible("a\u202eb\n\0\U000e0041\ud800") == "a⟦U+202E⟧b⟦U+000A⟧⟦U+0000⟧⟦U+E0041⟧⟦U+D800⟧"
    assert visible("a\n\tb\r", keep="\n\t") == "a\n\tb⟦U+000D⟧"
    assert visible("Ünïcode Ж 中文、。 😀 $ ()") == "Ünïcode Ж 中文、。 😀 $ ()"


@given(st.text())
def test_what_is_visible_holds_nothing_peculiar_and_keeps_the_rest(text):
    assert peculiar_characters(visible(text)) == ()
    assert (visible(text) == text) is (peculiar_characters(text) == ())


def test_flags_point_into_the_capture():
    rows = [("1", "ok", None), ("2", "a\u00adb", TypedCell(t="bytes", v="00"))]
    assert [(flag.place, flag.characters) for flag in derive_flags(("/term", "x\u00a0"), rows)] == [
        ("/term", ("U+00A0",)),
        ("/rows/1/1", ("U+00AD",)),
    ]


RULE = EnrichmentRule("r", "host", "hosts", "ID", ("ID", "Name", "Text", "More"), "Name", ("Text", "More"), preset=True)


def test_a_preset_loses_what_the_table_lacks_but_for_id_and_name():
    frozen = fit_rule(RULE, ("id", "name", "text"))
    assert (frozen.column, frozen.columns, frozen.name_column) == ("id", ("id", "name", "text"), "name")
    assert frozen.description_columns == ("text",)
    for missing in (("name", "text"), ("id", "text")):
        with pytest.raises(SettingsError) as refused:
            fit_rule(RULE, missing)
        assert (refused.value.code, refused.value.allowed) == ("SETTINGS_COLUMN", missing)


@pytest.mark.spec("A-152b")
@pytest.mark.parametrize(("columns", "missing"), [(("name",), "id"), (("id",), "name")])
def test_id_and_name_must_be_selected(columns, missing):
    with pytest.raises(SettingsError, match=f"columns without {missing}"):
        fit_rule(EnrichmentRule("r", "host", "hosts", "id", columns, "name"), ("id", "name"))
    with pytest.raises(SettingsError, match=f"columns without {missing}"):
        fit_catalog(Catalog("c", "host", "hosts", "id", "name", columns), ("id", "name"))


def test_a_spelling_that_could_mean_two_columns_is_refused():
    catalog = Catalog("c", "host", "hosts", "Id", "name", ("Id", "name"))
    with pytest.raises(SettingsError):
        fit_catalog(catalog, ("id", "ID", "name"))
    assert fit_catalog(catalog, ("id", "Id", "name")).id_column == "Id"


def test_a_locale_column_is_returned_even_where_it_is_not_listed():
    catalog = Catalog("c", "host", "hosts", "id", "name", ("id", "name"), locale_column="locale")
    assert fit_catalog(catalog, ("id", "name", "locale")).columns == ("id", "name", "locale")


def test_what_changed_between_bindings_is_named():
    old = Binding(dialect="sqlite", database="w.db", snapshot_id="s-1", file_digest="sha256:" + "0" * 64)
    assert changed(old, old) == []
    new = old.model_copy(update={"snapshot_id": "s-2", "file_digest": "sha256:" + "1" * 64})
    assert [line.partition(":")[0] for line in changed(old, new)] == ["snapshot_id", "file_digest"]
    assert changed(old, new)[0] == "snapshot_id: s-1 became s-2"
