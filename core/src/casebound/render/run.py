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


def run_nodes(summary: Mapping[str, Any], now: str, options: str = "") -> list[Node]:
    """Return the picture of what `run --format json` prints.

    States and times come out of the index, which may be a database of others: they are data.

    Args:
        summary: what it prints.
        now: as `format_time` writes it; a time that has come by then is no advice.
        options: with which the next command finds the same settings and cases.
    """
    tokens = summary["tokens"]
    used = f"tokens {tokens['input']} in, {tokens['output']} out"
    if tokens["unreported_calls"]:
        used += f" ({counted(tokens['unreported_calls'], 'call')} did not say)"
    if "money" in summary:
        used += f", money {summary['money'] or 'unknown'}"
    head = node(
        Piece(counted(sum(summary["cases"].values()), "case"), "bold"),
        f"  {summary['had']} taken further, {counted(summary['dispatches'], 'model call')}, {used}",
        children=[*_states(summary), *refused_nodes(summary, ", each left as it was")],
    )
    return [head, *_ending(summary, now, options)]


def _states(summary: Mapping[str, Any]) -> Iterator[Node]:
    for state, number in summary["cases"].items():
        yield node(data(state, _STYLES.get(state, "")), f"  {number}")


def _ending(summary: Mapping[str, Any], now: str, options: str) -> Iterator[Node]:
    stopped, left = summary["stopped"], summary["left"]
    if stopped:
        yield node("stopped  ", Piece(_STOPPED.get(stopped, stopped), "yellow"))
    if summary.get("error"):
        first, *others = summary["error"].splitlines()
        yield node(prose(first, "red"), children=[node(prose(line.strip())) for line in others])
    if left:
        command = f"casebound run {options}".rstrip()
        retry_at = summary["retry_at"] or ""
        when: list[Piece | str] = [", or after ", data(retry_at)] if retry_at > now else []
        yield node(
            f"left     {counted(left, 'case')} not done: ", whole(command), " goes on with those that can", *when
        )
