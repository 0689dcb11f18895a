"""The cases that a run refused, or would refuse, as a part of its picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from casebound.render.tree import Node, Piece, data, node, prose


def refused_nodes(found: Mapping[str, Any], what_became: str = "", *, why: bool = False) -> Iterator[Node]:
    """Yield a node for the `refused` cases of `found`, the first of them below it; none where there are none.

    Args:
        found: what tells of the cases.
        what_became: of all of them.
        why: whether the first case of each code is shown with its error; where nothing else told it.
    """
    total, shown = found["refused_total"], found["refused"]
    if total:
        reasons = _reasons(shown) if why else {}
        cases = [
            node(data(one["package"]), "  ", Piece(one["code"], "red"), children=reasons.get(one["package"], ()))
            for one in shown
        ]
        more = [node(Piece(f"and {total - len(shown)} more", "dim"))] if total > len(shown) else []
        yield node(Piece("refused", "red"), f"  {total}{what_became}", children=[*cases, *more])


def _reasons(shown: Sequence[Mapping[str, str]]) -> dict[str, list[Node]]:
    first = {one["code"]: one for one in reversed(shown)}
    return {
        one["package"]: [node(prose(line.strip())) for line in one["error"].split("\n")[1:]] for one in first.values()
    }
