"""The picture of a workspace: a few tables, and between them what it has cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from casebound.words import counted

Table: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]]]
WHAT_GOES_ON = {
    "retry_pending": "casebound run",
    "blocked": "casebound resume --due",
    "review": "casebound revise CASE",
    "broken": "casebound verify PACKAGE",
}


def status_parts(status: Mapping[str, Any]) -> Iterator[Table | str]:
    """Yield the parts of the picture, tables and lines of our own words, in the order of reading.

    Args:
        status: what `Status.to_json` gives.
    """
    if status["states"]:
        yield ("state", "cases"), [[state, str(count)] for state, count in status["states"].items()]
    if status["index"]["error"]:
        yield _behind(status["index"])
    yield _spent(status)
    yield _rate(status)
    if status["waiting"]:
        reasons = ("waits", "code", "cases", "may go on", "next from", "what goes on")
        yield reasons, [_reason(group) for group in status["waiting"]]
    yield from _listed(status, "blocked", ("blocked", "code", "not before"))
    yield from _listed(status, "review", ("in review", "code"))
    yield from _listed(status, "stopped", ("left as it was", "code"))
    if status["leased"]:
        yield ("worked on by", "process", "cases", "leased until", ""), [_worker(one) for one in status["leased"]]


def _behind(index: Mapping[str, Any]) -> str:
    unknown = counted(index["unknown_cases"], "case")
    return f"the index could not be brought up to date, and does not know {unknown}: {index['error']}"


def _spent(status: Mapping[str, Any]) -> str:
    tokens, unknown = status["tokens"], status["unknown_calls"]
    missing = tokens["unreported_calls"]
    return (
        f"{counted(status['cases'], 'case')}, {status['finished']} finished; {counted(status['calls'], 'call')}"
        + (f", {unknown} of them unknown" if unknown else "")
        + f"; tokens reported: {tokens['input']} in, {tokens['output']} out"
        + (f", nothing for {counted(missing, 'call')}" if missing else "")
    )


def _rate(status: Mapping[str, Any]) -> str:
    rate = status["rate"]
    return (
        f"in the last {rate['seconds'] // 60} minutes: {counted(rate['cases'], 'case')} asked,"
        f" {rate['finished']} of them finished, {counted(rate['calls'], 'call')} for them"
    )


def _reason(group: Mapping[str, Any]) -> list[str]:
    state = group["state"]
    timed = state in ("retry_pending", "blocked")
    due = str(group["due"]) if timed else ""
    return [state, group["code"], str(group["cases"]), due, group["earliest"] or "", WHAT_GOES_ON.get(state, "")]


def _listed(status: Mapping[str, Any], name: str, columns: Sequence[str]) -> Iterator[Table | str]:
    """Yield the first cases of a kind as a table, and how many more there are."""
    listed = status[name]
    if listed:
        keys = ("package", "code", "retry_at")[: len(columns)]
        yield columns, [[case[key] or "" for key in keys] for case in listed]
    if left_out := status[f"{name}_total"] - len(listed):
        yield f"and {left_out} more"


def _worker(worker: Mapping[str, Any]) -> list[str]:
    ended = "" if worker["lives"] else "has ended; the next run takes its cases"
    return [worker["host"], worker["process"], str(worker["cases"]), worker["until"], ended]
