"""The picture of a rehearsal: by stage and attempt, what was recorded and what was found now."""

from __future__ import annotations

from casebound.rehearsal import Judgment, Rehearsal, RehearsedAttempt, RehearsedStage
from casebound.render.tree import Node, Piece, data, node, prose, whole

STYLES = {"accepted": "bold green", "invalid": "bold red"}
MOST_FINDINGS = 20


def rehearsal_nodes(rehearsal: Rehearsal) -> list[Node]:
    """Return the picture; its first line says whether replies were judged as recorded, and how many are not there."""
    words, style = ("judged as recorded", "green") if rehearsal.agrees else ("judged otherwise", "bold yellow")
    missing = f", {rehearsal.unjudged} without a reply" if rehearsal.unjudged else ""
    head = (data(rehearsal.case_id, "bold"), "  ", Piece(words, style), missing, "  ", whole(rehearsal.package, "cyan"))
    return [node(*head, children=[_stage_node(stage) for stage in rehearsal.stages])]


def _stage_node(stage: RehearsedStage) -> Node:
    frozen = "" if stage.version == stage.frozen else f", frozen with {stage.frozen}"
    head = (data(stage.stage, "bold"), f"  version {stage.version}{frozen}, {len(stage.rules)} rules")
    nothing = [node(Piece("no reply was recorded", "dim"))]
    return node(*head, children=[_attempt_node(attempt) for attempt in stage.attempts] or nothing)


def _attempt_node(attempt: RehearsedAttempt) -> Node:
    head: tuple[Piece | str, ...] = (
        f"attempt {attempt.number}  recorded ",
        *_judgment(attempt.recorded),
        "  rehearsed ",
    )
    if attempt.agrees and attempt.rehearsed is not None and attempt.recorded is not None:
        return node(*head, Piece("the same", "green"), children=_findings(attempt.recorded))
    children = [
        node(words, children=_findings(judgment))
        for words, judgment in (("recorded", attempt.recorded), ("rehearsed", attempt.rehearsed))
        if judgment is not None and judgment.findings
    ]
    return node(*head, *_judgment(attempt.rehearsed), children=children)


def _judgment(judgment: Judgment | None) -> tuple[Piece, ...]:
    if judgment is None:
        return (Piece("nothing", "dim"),)
    code = (Piece("  "), data(judgment.code, "red")) if judgment.code else ()
    return (Piece(judgment.kind, STYLES.get(judgment.kind, "yellow")), *code)


def _findings(judgment: Judgment) -> list[Node]:
    found = [
        node(data(item.code, "red"), data(f"  {item.path}" if item.path else ""), "  ", prose(item.message))
        for item in judgment.findings[:MOST_FINDINGS]
    ]
    left = len(judgment.findings) - len(found)
    return [*found, node(Piece(f"and {left} more", "dim"))] if left else found
