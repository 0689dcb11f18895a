"""A tree of short lines, drawn as plain text or by rich. What comes from data goes in through `data` and nowhere else.

Rules:
- `data` makes invisible and bidirectional characters visible, so a line of data is one line of the picture.
- The plain drawing is a function of the tree alone: no width, no colour, no locale.
- Rich gets every piece as `Text` with a style: markup in data stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from casebound.text import visible

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

LINES = ("├─ ", "└─ ", "│  ", "   ")
ASCII_LINES = ("|- ", "`- ", "|  ", "   ")
_LAYOUT = re.compile(r"[ \t\r\n]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some characters of a line and the style that they have on a terminal.

    Attributes:
        whole: a path or a command: never broken by a line end of ours, so that it can be copied.
    """

    text: str
    style: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A line and what hangs below it."""

    pieces: tuple[Piece, ...]
    children: tuple[Node, ...] = ()


def data(text: str, style: str = "") -> Piece:
    """Return a piece of data: every peculiar character of it is written out."""
    return Piece(visible(text), style)


def whole(text: str, style: str = "") -> Piece:
    """Return a path or a command as a piece that is never broken."""
    return Piece(visible(text), style, whole=True)


def prose(text: str, style: str = "") -> Piece:
    """Return a piece of running text: line ends and runs of blanks become one blank, other signs as in `data`."""
    return Piece(visible(_LAYOUT.sub(" ", text)), style)


def node(*pieces: Piece | str, children: Iterable[Node] = ()) -> Node:
    """Return a node; a bare string is one of our own words."""
    line = tuple(Piece(piece) if isinstance(piece, str) else piece for piece in pieces)
    return Node(line, tuple(children))


def plain(nodes: Iterable[Node], lines: tuple[str, str, str, str] = LINES) -> str:
    """Return the trees as text, one below the other with an empty line between those that have branches."""
    drawn: list[str] = []
    branched = False
    for root in nodes:
        if drawn and (branched or root.children):
            drawn.append("")
        branched = bool(root.children)
        drawn.append(_line(root))
        drawn += _below(root, "", lines)
    return "\n".join(drawn)


def _line(root: Node) -> str:
    return "".join(piece.text for piece in root.pieces).rstrip()


def _below(root: Node, margin: str, lines: tuple[str, str, str, str]) -> Iterator[str]:
    branch, last_branch, trunk, nothing = lines
    for number, child in enumerate(root.children, start=1):
        last = number == len(root.children)
        yield f"{margin}{last_branch if last else branch}{_line(child)}".rstrip()
        yield from _below(child, margin + (nothing if last else trunk), lines)


def print_rich(nodes: Iterable[Node]) -> None:
    """Draw the trees on the terminal that standard output is."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    branched = False
    for number, root in enumerate(nodes):
        if number and (branched or root.children):
            console.print()
        branched = bool(root.children)
        console.print(_rich(root), crop=False)


def _rich(root: Node) -> Tree:
    from rich.tree import Tree

    tree = Tree(_text(root), guide_style="dim")
    waiting = [(tree, root)]
    while waiting:
        drawn, current = waiting.pop()
        waiting += [(drawn.add(_text(child)), child) for child in current.children]
    return tree


def _text(root: Node) -> Text:
    from rich.text import Text

    text = Text.assemble(*((piece.text, piece.style) for piece in root.pieces))
    if any(piece.whole for piece in root.pieces):
        text.no_wrap, text.overflow = True, "ignore"
    return text
