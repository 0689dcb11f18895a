"""What a run would send, and at most spend, as a picture for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from casebound.render.tree import Node, Piece, data, node, prose, whole
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
        *_refused(found),
        node("Nothing was sent, and nothing written."),
    ]


def _money(money: str | None) -> str:
    return "" if money is None else f", {money} of money"


def _refused(found: Mapping[str, Any]) -> Iterator[Node]:
    total, shown = found["refused_total"], found["refused"]
    if total:
        cases = list(_refused_cases(shown))
        more = [node(Piece(f"and {total - len(shown)} more", "dim"))] if total > len(shown) else []
        yield node(Piece("refused", "red"), f"  {total}", children=[*cases, *more])


def _refused_cases(shown: Sequence[Mapping[str, str]]) -> Iterator[Node]:
    """Yield a line a case; the first one of each code says why."""
    told = set()
    for one in shown:
        why = () if one["code"] in told else one["error"].split("\n")[1:]
        told.add(one["code"])
        yield node(
            data(one["package"]), "  ", Piece(one["code"], "red"), children=[node(prose(line.strip())) for line in why]
        )
