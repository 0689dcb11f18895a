"""What a run over a workspace came to, as a picture for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
        children=[*_states(summary), *_refused(summary)],
    )
    return [head, *_ending(summary, now, options)]


def _states(summary: Mapping[str, Any]) -> Iterator[Node]:
    for state, number in summary["cases"].items():
        yield node(Piece(state, _STYLES.get(state, "")), f"  {number}")


def _refused(summary: Mapping[str, Any]) -> Iterator[Node]:
    total, shown = summary["refused_total"], summary["refused"]
    if total:
        cases = [node(data(one["package"]), "  ", Piece(one["code"], "red")) for one in shown]
        more = [node(Piece(f"and {total - len(shown)} more", "dim"))] if total > len(shown) else []
        yield node(Piece("refused", "red"), f"  {total}, each left as it was", children=[*cases, *more])


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
        when = f", or after {retry_at}" if retry_at > now else ""
        yield node(
            f"left     {counted(left, 'case')} not done: ", whole(command), f" goes on with those that can{when}"
        )
