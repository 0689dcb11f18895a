"""Links as a person reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from casebound.render.tree import Node, Piece, data, node, prose, whole

from casebound_entity_link.layout import STAGE
from casebound_entity_link.link import Link

Line = Mapping[str, Any]

_STYLES = {"suggested": "bold green", "proposed": "yellow"}
NOT_MERGED = "a suggestion, not reviewed for quality; nothing was merged"


def link_nodes(link: Link) -> list[Node]:
    """Return the picture of one link: both sides, the suggestion, the decision that counts, or what it waits for."""
    line = link.to_json()
    head = (data(line["link"], "bold"), "  ", Piece(line["state"], _STYLES.get(line["state"], "bold yellow")))
    return [node(*head, children=[*_sides(line), *_suggestion(line), *_decision(line), *_waiting(line)])]


def shown_nodes(link: Link) -> list[Node]:
    """Return the picture that `link show` draws: what the model saw of both sides, and every attempt and decision."""
    (picture,) = link_nodes(link)
    context, shown = link.input.context, link.shown()
    texts = [_texts(side, context[side]) for side in ("left", "right")]
    attempts = [
        node(
            data(f"attempt {attempt['attempt']}  {attempt['outcome'] or 'not decided'}"),
            data(f"  {attempt['code']}" if attempt["code"] else "", "red"),
            children=[node(data(finding["path"]), "  ", prose(finding["message"])) for finding in attempt["findings"]],
        )
        for attempt in shown["attempts"]
    ]
    earlier = [_decided(decision, "superseded: ") for decision in shown["all_decisions"][:-1]]
    return [Node(picture.pieces, (*picture.children, *texts, *attempts, *earlier))]


def _sides(line: Line) -> Iterator[Node]:
    for name in ("left", "right"):
        side = line[name]
        yield node(
            f"{name:5}  ",
            data(side["package"]),
            "  ",
            data(side["entity"], "cyan"),
            data(f"  {side['type']} {side['id']}  {side['name']}"),
            data(f"  {' '.join(side['mentions'])}", "cyan"),
        )


def _suggestion(line: Line) -> Iterator[Node]:
    reply = line["suggestion"]
    if reply is not None:
        cited = [node(f"{name}: ", data(" ".join(reply[name]["mentionIds"]), "cyan")) for name in ("left", "right")]
        below = [node(prose(reply["rationale"])), *cited, node(Piece(NOT_MERGED, "dim"))]
        yield node("suggestion  ", data(reply["assessment"], "bold"), children=below)


def _decision(line: Line) -> Iterator[Node]:
    if line["decision"] is not None:
        yield _decided(line["decision"], "decision  ")
    elif line["suggestion"] is not None:
        command = f"casebound link decide {line['link'][:19]} --accept|--reject --by NAME --rationale TEXT"
        yield node("no decision yet: ", whole(command))


def _decided(decision: Line, words: str) -> Node:
    who = data(f"  {decision['at']}  {decision['decided_by']}")
    return node(words, data(decision["decision"], "bold"), who, children=[node(prose(decision["rationale"]))])


def _waiting(line: Line) -> Iterator[Node]:
    if line["code"] is None:
        return
    until = f", until {line['retry_at']}" if line["retry_at"] else ""
    yield node(data(f"waits: {line['code']}{until}", "yellow"), children=[node(prose(line["error"] or ""))])
    if line["state"] == "blocked":
        yield node(f"`casebound link propose … --resume` goes on; [llm.stage.{STAGE}] says who is asked")


def _texts(name: str, side: Line) -> Node:
    mentions = [
        node(data(each["mentionId"], "cyan"), f"  {each['source']}", children=[node(prose(each["text"]))])
        for each in side["mentions"]
    ]
    limits = [node(Piece("limitation: ", "dim"), prose(each)) for each in side["limitations"]]
    return node(f"{name} as the model saw it: ", prose(side["description"]), children=[*mentions, *limits])
