"""`summary.md`: the interpretation for a person, with every label that limits what it says.

Deterministic: a function of case, context and interpretation. Text of the report and the database is escaped, so that
it stays text, and invisible characters are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from casebound.contracts.case import Case
from casebound.contracts.interpretation import Interpretation, InterpretationContext
from casebound.text import visible

_BLANKS = re.compile(r"[ \t\r\n]+")
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]()#+!|<>~-"})


def derive_summary(case: Case, context: InterpretationContext, interpretation: Interpretation) -> bytes:
    """Return `summary.md` as UTF-8 with LF."""
    reply: dict[str, Any] = interpretation.reply
    lines = [f"# {_text(case.fields.title or case.case_id)}", "", f"Case `{case.case_id}`", ""]
    lines += [*_statement(reply["summary"]), ""]
    lines += _section("Entities", _entities(reply["relevant_entities"], context.context))
    lines += _section("Observed", _bullets(reply["observed_behavior"]))
    lines += _section("Formally expected", _bullets(reply["expected_behavior"]))
    lines += _section("Gap", _single(reply["behavior_gap"]))
    lines += _section("First known divergence", _single(reply["first_known_divergence"]))
    lines += _section(
        "Described by the project's database (local description, not independently verified)",
        _bullets(reply.get("described_behavior", [])),
    )
    lines += _section(
        "Provisional gap (against a local description, provisional)", _single(reply.get("provisional_behavior_gap"))
    )
    lines += _section("Unknown", _bullets(reply["unknowns"]))
    lines += _section("Sources", _sources(context.context["sources"]))
    return ("\n".join(lines).rstrip() + "\n").encode()


def _text(text: str) -> str:
    return visible(_BLANKS.sub(" ", text).strip(" ").translate(_MARKDOWN))


def _code(text: str) -> str:
    """Return data as a code span; a back-quote in it, which would end the span, is shown by its code point."""
    return "`" + visible(_BLANKS.sub(" ", text)).replace("`", "⟦U+0060⟧") + "`"


def _cites(source_ids: Sequence[str]) -> str:
    return " ".join(f"`{name}`" for name in source_ids)


def _statement(statement: Mapping[str, Any]) -> list[str]:
    return [f"{_text(statement['text'])} ({_cites(statement['source_ids'])})"]


def _section(title: str, lines: Iterator[str]) -> list[str]:
    body = list(lines)
    return [f"## {title}", "", *body, ""] if body else []


def _bullets(statements: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for statement in statements:
        yield f"- {_statement(statement)[0]}"


def _single(statement: Mapping[str, Any] | None) -> Iterator[str]:
    if statement is not None:
        yield _statement(statement)[0]


def _entities(given: Sequence[Mapping[str, Any]], context: Mapping[str, Any]) -> Iterator[str]:
    known = {entity["id"]: entity for entity in context["entities"]}
    for item in given:
        entity = known[item["entity_id"]]
        names = [link["name"] for link in entity["lookup_associations"]] + [
            link["name"] for link in entity.get("name_bindings", ())
        ]
        roles = dict.fromkeys(f"{link['role']} ({link['role_basis']})" for link in entity["lookup_associations"])
        name = " / ".join(f"**{_text(name)}**" for name in dict.fromkeys(names)) or "(no name bound)"
        what = f"{_text(entity['type'])} {_code(entity['canonical_id'])}"
        yield f"- {name}: {what}, {_text(item['reason'])} ({_cites(item['source_ids'])})"
        for role in roles:
            yield f"  - role: {_text(role)}"


def _sources(sources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for source in sources:
        text = str(source["text"])
        shown = text if len(text) <= 400 else text[:400] + " …"
        yield f"- `{source['id']}` {_text(source['kind'])}: {_text(shown)}"
