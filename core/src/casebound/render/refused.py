"""The cases that a run refused, or would refuse, as a part of its picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from casebound.render.tree import Node, Piece, data, node


def refused_nodes(found: Mapping[str, Any], what_became: str = "") -> Iterator[Node]:
    """Yield a node for the `refused` cases of `found`, the first of them below it; none where there are none."""
    total, shown = found["refused_total"], found["refused"]
    if total:
        cases = [node(data(one["package"]), "  ", Piece(one["code"], "red")) for one in shown]
        more = [node(Piece(f"and {total - len(shown)} more", "dim"))] if total > len(shown) else []
        yield node(Piece("refused", "red"), f"  {total}{what_became}", children=[*cases, *more])
