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
from typing import TypeAlias

from casebound.text import visible

Lines: TypeAlias = tuple[str, str, str, str]
LINES: Lines = ("├─ ", "└─ ", "│  ", "   ")
ASCII_LINES: Lines = ("|- ", "`- ", "|  ", "   ")
LEAST_WIDTH = 24
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


EMPTY = Node(())
# What stands before the first row of a node's line, before its further rows, and the node.
Drawn: TypeAlias = tuple[str, str, Node]


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


def plain(nodes: Iterable[Node], lines: Lines = LINES) -> str:
    """Return the trees as text, one below the other, with an empty line beside each that has branches."""
    return "\n".join((first + _line(drawn)).rstrip() for first, _, drawn in _walk(nodes, lines))


def print_rich(nodes: Iterable[Node]) -> None:
    """Draw the trees on the terminal that standard output is; a line that is too long goes on below its beginning."""
    from rich.console import Console
    from rich.text import Text

    console = Console(markup=False, highlight=False, emoji=False)
    for first, rest, drawn in _walk(nodes, LINES):
        text = Text.assemble(*((piece.text, piece.style) for piece in drawn.pieces))
        whole = any(piece.whole for piece in drawn.pieces)
        rows = [text] if whole else text.wrap(console, max(LEAST_WIDTH, console.width - len(rest)))
        for number, row in enumerate(rows):
            row.rstrip()
            console.print(Text.assemble((rest if number else first, "dim"), row), soft_wrap=True)


def _line(drawn: Node) -> str:
    return "".join(piece.text for piece in drawn.pieces)


def _walk(nodes: Iterable[Node], lines: Lines) -> Iterator[Drawn]:
    """Yield each node with what stands before its line, and before what does not fit into that."""
    branched: bool | None = None
    for root in nodes:
        if branched or (branched is not None and root.children):
            yield "", "", EMPTY
        branched = bool(root.children)
        yield "", lines[2] if root.children else lines[3], root
        yield from _below(root, "", lines)


def _below(root: Node, margin: str, lines: Lines) -> Iterator[Drawn]:
    branch, last_branch, trunk, nothing = lines
    for number, child in enumerate(root.children, start=1):
        last = number == len(root.children)
        inner = margin + (nothing if last else trunk)
        yield margin + (last_branch if last else branch), inner + (trunk if child.children else nothing), child
        yield from _below(child, inner, lines)
