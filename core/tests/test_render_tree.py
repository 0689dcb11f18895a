"""A drawing is a function of its tree, and no data can leave its line or become markup."""

from __future__ import annotations

import pytest
from casebound.render.tree import ASCII_LINES, Node, data, node, plain, print_rich, prose, whole
from casebound.text import peculiar_characters
from hypothesis import given
from hypothesis import strategies as st

TEXTS = st.text(st.characters(codec=None, categories=None), max_size=20)
TREES = st.recursive(
    TEXTS.map(lambda text: node(data(text))),
    lambda inner: st.tuples(TEXTS, st.lists(inner, max_size=3)).map(lambda part: node(data(part[0]), children=part[1])),
    max_leaves=12,
)


def count(tree: Node) -> int:
    return 1 + sum(count(child) for child in tree.children)


def test_a_tree_is_drawn_with_its_branches():
    tree = node("a", children=[node("b", children=[node("c")]), node("d")])
    assert plain([tree]) == "a\n├─ b\n│  └─ c\n└─ d"
    assert plain([tree], ASCII_LINES) == "a\n|- b\n|  `- c\n`- d"


def test_an_empty_line_stands_beside_what_has_branches():
    leaf, tree = node("x"), node("a", children=[node("b")])
    assert plain([leaf, leaf, tree, leaf]).split("\n") == ["x", "x", "", "a", "└─ b", "", "x"]
    assert plain([]) == ""


@given(TREES)
def test_each_node_is_one_line_without_peculiar_characters(tree):
    drawn = plain([tree])
    assert len(drawn.split("\n")) == count(tree)
    assert peculiar_characters(drawn.replace("\n", "")) == ()
    drawn.encode()


def test_prose_folds_layout_and_shows_everything_else():
    assert prose("a\r\n  b\tc\u00a0d\u2028e\u202ef").text == "a b c⟦U+00A0⟧d⟦U+2028⟧e⟦U+202E⟧f"
    assert data("a\nb").text == "a⟦U+000A⟧b"


@pytest.fixture
def _forty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


@pytest.mark.usefixtures("_forty_columns")
def test_markup_in_data_stays_text(capsys):
    print_rich([node(data("[red]x[/red] :smile: [link=http://h]y"))])
    assert capsys.readouterr().out == "[red]x[/red] :smile: [link=http://h]y\n"


@pytest.mark.usefixtures("_forty_columns")
def test_long_text_goes_on_below_and_a_path_is_never_broken(capsys):
    path = "/a/" + "long/" * 20 + "file"
    words = " ".join(["word"] * 20)
    print_rich([node("top", children=[node(words, children=[node("below")]), node("at  ", whole(path))])])
    lines = capsys.readouterr().out.split("\n")
    assert lines[:3] == ["top", "├─ word word word word word word word", "│  │  word word word word word word word"]
    assert f"└─ at  {path}" in lines
    assert max(len(line) for line in lines if path not in line) <= 40
