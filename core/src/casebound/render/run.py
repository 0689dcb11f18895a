"""What a run over a workspace came to, as a picture for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from casebound.render.refused import refused_nodes
from casebound.render.tree import Node, Piece, data, node, prose, whole
from casebound.words import counted

_STYLES = {"interpreted": "green", "blocked": "red", "review": "red", "broken": "red", "retry_pending": "yellow"}
_STOPPED = {
    "interrupted": "interrupted",
    "max_dispatches": "--max-dispatches is used up",
    "BUDGET_REACHED": "the budget of a run is used up",
}


def run_nodes(summary: Mapping[str, Any], options: str = "") -> list[Node]:
    """Return the picture of what `run --format json` prints; `options` find the same settings and cases again.

    States and times come out of the index, which may be a database of others: they are data.
    """
    tokens = summary["tokens"]
    used = f"tokens {_number(tokens['input'])} in, {_number(tokens['output'])} out"
    if "money" in summary:
        used += f", money {summary['money'] or 'unknown'}"
    head = node(
        Piece(counted(sum(summary["cases"].values()), "case"), "bold"),
        f"  {summary['had']} taken further, {counted(summary['dispatches'], 'model call')}, {used}",
        children=[*_states(summary), *refused_nodes(summary, ", each left as it was")],
    )
    return [head, *_ending(summary, options)]


def _states(summary: Mapping[str, Any]) -> Iterator[Node]:
    for state, number in summary["cases"].items():
        yield node(data(state, _STYLES.get(state, "")), f"  {number}")


def _ending(summary: Mapping[str, Any], options: str) -> Iterator[Node]:
    stopped, left = summary["stopped"], summary["left"]
    if stopped:
        yield node("stopped  ", Piece(_STOPPED.get(stopped, stopped), "yellow"))
    if summary.get("error"):
        yield node(prose(summary["error"], "red"))
    if left:
        command = f"casebound run {options}".rstrip()
        when: list[Piece | str] = [", or after ", data(summary["retry_at"])] if summary["retry_at"] else []
        yield node(
            f"left     {counted(left, 'case')} not done: ", whole(command), " goes on with those that can", *when
        )


def _number(tokens: int | None) -> str:
    return "unknown" if tokens is None else f"{tokens}"
