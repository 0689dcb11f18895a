"""What a run would send, and at most spend, as a picture for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casebound.render.refused import refused_nodes
from casebound.render.tree import Node, Piece, node, whole
from casebound.words import counted


def forecast_nodes(found: Mapping[str, Any]) -> list[Node]:
    """Return the picture of what `run --dry-run --format json` prints."""
    asked, most = found["next_requests"], found["at_most"]
    states = [node(Piece(state, "bold"), f"  {number}") for state, number in found["cases"].items()]
    stages = [node(f"{stage}  {number}") for stage, number in found["next"].items()]
    limits = [node(whole(name), f"  {cap}") for name, cap in found["limits"].items()]
    return [
        node(Piece(counted(sum(found["cases"].values()), "case"), "bold"), "  would be taken further", children=states),
        node(
            f"next     {counted(asked['calls'], 'request')}, at most {asked['input_tokens']} tokens in and "
            f"{asked['output_tokens']} out{_money(asked['money'])}",
            children=stages,
        ),
        node(
            f"at most  {counted(most['calls'], 'request')} to the end, {most['output_tokens']} tokens out"
            f"{_money(most['output_money'])}; what later ones ask depends on the replies before"
        ),
        node(
            "limits",
            "" if limits else "   none in [budget]: nothing else bounds what the run may spend",
            children=limits,
        ),
        *refused_nodes(found, why=True),
        node("Nothing was sent, and nothing written."),
    ]


def _money(money: str | None) -> str:
    return "" if money is None else f", {money} of money"
