"""Why a case says what it says: mention → search → capture → candidates → assessment, taken from its files.

Rules:
- A chain is plain data, the same wherever the package lies: no path of a machine, no time.
- Quotes are exactly the cited characters; what stands around them is cut from the same source and from no other.
- A step that the case has not reached yet is None or empty; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from casebound.contracts.capture import Capture, ProjectFact
from casebound.contracts.case import Admission, CitedEntity, Mention
from casebound.contracts.interpretation import InterpretationContext
from casebound.contracts.plan import Candidate, CandidateList
from casebound.contracts.stage_facts import StageFacts
from casebound.progress import derive_progress, latest_revision
from casebound.protocols.parts.identities import lookup_facts_v1, selected_groups_v1, unresolved_v1
from casebound.result import derive_answered_by, load_stage_facts
from casebound.store import layout
from casebound.store.package import Package

# Code points of the same source that are shown on either side of a quote.
CONTEXT = 48


@dataclass(frozen=True, slots=True)
class Quote:
    """An exact place in a source, with a little of what stands around it.

    Attributes:
        source: `S` or `P` alias; `kind` is the source's kind.
        field: field of the report; None for a `P`, whose range counts from the start of its text.
        start, end: half-open range in code points.
        text: exactly the characters of the range.
        before, after: at most `CONTEXT` code points of the same source on either side.
        cut_before, cut_after: whether the source goes on beyond them.
    """

    source: str
    kind: str
    field: str | None
    start: int
    end: int
    before: str
    text: str
    after: str
    cut_before: bool
    cut_after: bool


@dataclass(frozen=True, slots=True)
class CaptureLink:
    """The executed query of a search: what it covered and how much of it was kept.

    Attributes:
        alias: `V` alias; `digest` is the address of the file that holds the query and its rows.
        snapshot: the operator's name for the state of the database.
        matched: rows that matched among those read.
        truncated: more may match than was kept; `limit_met` says which limit cut it off.
        scope: the sentence that says what a miss means.
    """

    alias: str
    digest: str
    snapshot: str
    database: str
    matched: int
    truncated: bool
    limit_met: str | None
    scope: str


@dataclass(frozen=True, slots=True)
class CandidateLink:
    """One row that a search returned; `row` is its JSON pointer inside the capture."""

    type: str
    id: str
    name: str
    locale: str | None
    row: str
    selected: bool


@dataclass(frozen=True, slots=True)
class AssessmentLink:
    """What was decided about the candidates of one search.

    Attributes:
        alias: of the entity that was selected (`N`, or `E` where the report cites it too), or of what stayed
            unresolved (`D`).
        status: `selected`, `ambiguous` or `no_match`.
        source_ids: what the decision cites.
    """

    alias: str
    status: str
    type: str | None
    id: str | None
    role: str
    reason: str
    source_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchLink:
    """One proposed search and all that followed from it."""

    index: int
    term: str
    catalog: str
    role: str
    reason: str
    mentions: tuple[Quote, ...]
    capture: CaptureLink | None
    candidates: tuple[CandidateLink, ...]
    assessment: AssessmentLink | None


@dataclass(frozen=True, slots=True)
class FactLink:
    """An `F` fact or a `P` text that the database holds about a cited entity.

    Attributes:
        kind: `project_entity_name`, `project_field` or `project_description`.
        capture: digest of the capture; `pointer` names the cell inside it.
    """

    alias: str
    kind: str
    rule: str
    column: str
    value: str
    capture: str
    pointer: str


@dataclass(frozen=True, slots=True)
class CitedLink:
    """A typed id that the report itself cites, and what the database says about it."""

    alias: str
    type: str
    id: str
    mentions: tuple[Quote, ...]
    facts: tuple[FactLink, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Everything that a case claims, each claim down to the characters of the report and the row of the table.

    Attributes:
        package: id of the package.
        searches: None where the case was not planned (yet).
        answered_by: by stage, who gave the reply that was accepted; see `result.derive_answered_by`.
    """

    package: str
    case_id: str | None
    title: str | None
    state: str
    code: str | None
    cited: tuple[CitedLink, ...] = ()
    searches: tuple[SearchLink, ...] | None = None
    answered_by: dict[str, dict[str, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the chain as JSON data."""
        return asdict(self)


def derive_chain(package: Package) -> Chain:
    """Return the chain of a case, as far as its files go. Raises `IntegrityError`."""
    progress = derive_progress(package)
    admission = package.load_if(layout.ADMISSION, Admission)
    revision = latest_revision(package)
    facts = load_stage_facts(package, revision)
    context = package.load_if(revision.context, InterpretationContext)
    return Chain(
        package=package.root.name,
        case_id=admission.case_id if admission else None,
        title=facts.case.fields.title if facts else None,
        state=progress.state,
        code=progress.code,
        cited=tuple(_cited(facts)) if facts else (),
        searches=None if facts is None or facts.plan is None else tuple(_searches(facts, context)),
        answered_by=derive_answered_by(package, revision),
    )


def _cited(facts: StageFacts) -> Iterable[CitedLink]:
    for entity in facts.case.entities:
        yield CitedLink(
            alias=entity.id,
            type=entity.type,
            id=entity.canonical_id,
            mentions=_quotes(facts, entity.mentions),
            facts=(*_facts(facts, entity), *_descriptions(facts, entity)),
        )


def _facts(facts: StageFacts, entity: CitedEntity) -> Iterable[FactLink]:
    for fact in facts.facts.facts:
        if fact.entity == entity.id:
            yield _fact(fact)


def _fact(fact: ProjectFact) -> FactLink:
    return FactLink(fact.id, fact.kind, fact.rule, fact.column, fact.value, fact.capture, fact.pointer)


def _descriptions(facts: StageFacts, entity: CitedEntity) -> Iterable[FactLink]:
    for text in facts.facts.sources:
        if text.entity == entity.id:
            yield FactLink(text.id, text.kind, text.rule, text.column, text.text, text.capture, text.pointer)


def _searches(facts: StageFacts, context: InterpretationContext | None) -> Iterable[SearchLink]:
    assert facts.plan is not None  # noqa: S101  # asked only where there is a plan
    aliases = _decision_aliases(facts, context)
    for index, search in enumerate(facts.plan.searches):
        listed = facts.candidates.searches[index] if facts.candidates else None
        resolution = facts.assessment.resolutions[index] if facts.assessment else None
        assessment = None if resolution is None else _assessment(aliases[index], resolution)
        yield SearchLink(
            index=index,
            term=str(search["term"]),
            catalog=str(search["catalog"]),
            role=str(search["role"]),
            reason=str(search["reason"]),
            mentions=_quotes(facts, facts.plan.groundings[index].mentions),
            capture=None if listed is None else _capture(listed, facts.captures[index]),
            candidates=() if listed is None else tuple(_candidate(row, assessment) for row in listed.candidates),
            assessment=assessment,
        )


def _decision_aliases(facts: StageFacts, context: InterpretationContext | None) -> dict[int, str]:
    """Return by search the alias of the entity that it selected, or of the identity that it left unresolved.

    How selections become entities is the affair of the interpretation's version, so its context tells; before there is
    one, the aliases are those of grouped identities.
    """
    found: dict[int, str] = {}
    entities: Any = context.context["entities"] if context else selected_groups_v1(facts, lookup_facts_v1(facts))
    for entity in entities:
        for link in entity["lookup_associations"]:
            found[link["search_index"]] = str(entity["id"])
    for unresolved in unresolved_v1(facts):
        found[int(str(unresolved["pointer"]).rpartition("/")[2])] = str(unresolved["id"])
    return found


def _assessment(alias: str, resolution: dict[str, Any]) -> AssessmentLink:
    entity = resolution["entity"] or {"type": None, "id": None}
    return AssessmentLink(
        alias=alias,
        status=resolution["status"],
        type=entity["type"],
        id=entity["id"],
        role=resolution["role"],
        reason=resolution["reason"],
        source_ids=tuple(resolution["source_ids"]),
    )


def _capture(listed: CandidateList, capture: Capture) -> CaptureLink:
    return CaptureLink(
        alias=listed.alias,
        digest=listed.capture,
        snapshot=capture.binding.snapshot_id,
        database=capture.binding.database,
        matched=capture.matched,
        truncated=capture.truncated,
        limit_met=capture.limit_met,
        scope=capture.scope,
    )


def _candidate(row: Candidate, assessment: AssessmentLink | None) -> CandidateLink:
    selected = assessment is not None and (row.type, row.id) == (assessment.type, assessment.id)
    return CandidateLink(row.type, row.id, row.name, row.locale, row.row, selected)


def _quotes(facts: StageFacts, mentions: Sequence[Mention]) -> tuple[Quote, ...]:
    return tuple(_quote(facts, mention) for mention in mentions)


def _quote(facts: StageFacts, mention: Mention) -> Quote:
    if mention.field is None:
        project = next(source for source in facts.facts.sources if source.id == mention.source)
        kind, text, first, last = str(project.kind), project.text, 0, len(project.text)
    else:
        source = next(source for source in facts.case.sources if source.id == mention.source)
        kind, text, first, last = str(source.kind), facts.case.fields.text(mention.field), source.start, source.end
    before = max(first, mention.start - CONTEXT)
    after = min(last, mention.end + CONTEXT)
    return Quote(
        source=mention.source,
        kind=kind,
        field=mention.field,
        start=mention.start,
        end=mention.end,
        before=text[before : mention.start],
        text=text[mention.start : mention.end],
        after=text[mention.end : after],
        cut_before=before > first,
        cut_after=after < last,
    )
