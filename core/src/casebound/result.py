"""What `resolve` answers about a case: entities, what stayed unresolved, calls and tokens. Derived from files alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from casebound.canonical import MAX_SAFE_INTEGER
from casebound.contracts.assessment import Assessment
from casebound.contracts.capture import Facts
from casebound.contracts.case import Admission, Case, Mention
from casebound.contracts.interpretation import InterpretationInput
from casebound.contracts.model_call import NativeRecord, Usage
from casebound.contracts.plan import Candidates, Plan, ResolutionInput
from casebound.contracts.stage_facts import StageFacts
from casebound.errors import CODES, IntegrityError
from casebound.llm.attempts import NATIVE, AttemptLog
from casebound.llm.course import load_course
from casebound.llm.replay import replayed_from
from casebound.progress import WAITING, Progress, derive_progress, latest_revision
from casebound.protocols.parts.identities import lookup_facts_v1, name_bindings_v1, selected_groups_v1
from casebound.specs import CORE_STAGES
from casebound.store import layout
from casebound.store.captures import load_captures
from casebound.store.layout import Revision
from casebound.store.package import Package

_COMMAND_ON_CASE = re.compile(r"(`casebound (?:resume|revise|show) )CASE(`)")


@dataclass(frozen=True, slots=True)
class Result:
    """The answer about one report; `to_json` is the line that `resolve --format json` prints.

    Attributes:
        report: as it was given; None where a case is shown by its id.
        package: the package's folder.
        resolver: `model` where a model gave any reply that was accepted, else `rules`; before there is one, as frozen.
        answered_by: by stage, who gave the reply that was accepted; see `derive_answered_by`.
        error: the message of the error that ended it, None where there was none.
        rejected: of a case that waits: the last reply of its stage that was refused, with what the rules found.
        replayed: digest of the recording that its replies came from; None where all came from a provider.
        summary: path of `summary.md`, None where the case is not interpreted.
        searches: how many the plan proposes, None where there is no plan.
    """

    report: str | None
    case_id: str | None
    package: str | None
    state: str
    code: str | None
    resolver: str | None
    entities: tuple[dict[str, Any], ...] = ()
    unresolved: tuple[dict[str, Any], ...] = ()
    calls: Mapping[str, int] | None = None
    tokens: Mapping[str, int | None] | None = None
    error: str | None = None
    retry_at: str | None = None
    rejected: Mapping[str, Any] | None = None
    replayed: str | None = None
    summary: str | None = None
    searches: int | None = None
    answered_by: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the documented keys; `error`, `retry_at`, `rejected` and `replayed` only where there are any.

        `answered_by` is there where a fallback answered, so that nobody takes its answer for another's.
        """
        line: dict[str, Any] = {
            "report": _showable(self.report),
            "case_id": self.case_id,
            "package": _showable(self.package),
            "state": self.state,
            "code": self.code,
            "resolver": self.resolver,
            "entities": list(self.entities),
            "unresolved": list(self.unresolved),
            "calls": dict(self.calls or dict.fromkeys(CORE_STAGES, 0)),
            "tokens": dict(self.tokens or {"input": None, "output": None}),
        }
        if self.error:
            line["error"] = _showable(self.error)
        if self.retry_at:
            line["retry_at"] = self.retry_at
        if self.rejected:
            line["rejected"] = dict(self.rejected)
        if self.replayed:
            line["replayed"] = self.replayed
        if any(who["fallback"] for who in self.answered_by.values()):
            line["answered_by"] = {stage: dict(who) for stage, who in self.answered_by.items()}
        return line

    @property
    def succeeded(self) -> bool:
        """Whether nothing failed and nothing waits."""
        return self.code is None and self.error is None

    @property
    def exit_status(self) -> int:
        """The documented exit status of a run over this report alone: 1 where it waits, that of its error else."""
        if self.succeeded:
            return 0
        row = None if self.state in WAITING or self.code is None else CODES.get(self.code)
        return row.exit_status if row else 1


def _showable(text: str | None) -> str | None:
    """Return text whose bytes may come from a file name: what is no UTF-8 in it becomes an escape."""
    return text if text is None else text.encode("utf-8", "backslashreplace").decode()


def common_exit_status(statuses: Iterable[int]) -> int:
    """Return the exit status of a command that did several things: theirs where all have the same, else 1."""
    found = set(statuses)
    return found.pop() if len(found) == 1 else int(bool(found))


@contextmanager
def contradictions_told(package: Package) -> Iterator[None]:
    """Show something of a package. Each of its files may be sound and still not fit the others, or not be of ours.

    Raises:
        IntegrityError: `VERIFY_FAILED`, where what is shown rests on something that is not there, or is something else.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as exc:
        found = f"files that do not fit together ({type(exc).__name__})"
        hint = f"`casebound verify {package.root}` says which"
        raise IntegrityError("VERIFY_FAILED", path=str(package.root), found=found, hint=hint) from exc


def told_of_case(message: str, package: Package) -> str:
    """Return a message in which the commands that it advises name the case: `casebound resume INC-7`."""
    return _COMMAND_ON_CASE.sub(lambda match: f"{match[1]}{package.root.name}{match[2]}", message)


def derive_result(package: Package, *, report: str | None = None, progress: Progress | None = None) -> Result:
    """Return the answer about a package, as far as its files go. Raises `IntegrityError`."""
    progress = progress or derive_progress(package)
    revision = latest_revision(package)
    admission = package.load_if(layout.ADMISSION, Admission)
    facts = load_stage_facts(package, revision)
    input_ = package.load_if(revision.input, InterpretationInput)
    answered_by = derive_answered_by(package, revision)
    return Result(
        report=report,
        case_id=admission.case_id if admission else None,
        package=str(package.root),
        state=progress.state,
        code=progress.code,
        resolver=_resolver(input_, answered_by),
        answered_by=answered_by,
        entities=tuple(_entities(facts)) if facts else (),
        unresolved=tuple(_unresolved(facts)) if facts else (),
        calls=_calls(package, revision),
        tokens=_tokens(package, revision),
        retry_at=progress.event.retry_at if progress.event else None,
        error=told_of_case(progress.event.detail, package) if progress.event else None,
        rejected=_rejected(package, revision, progress),
        replayed=_replayed(package, revision),
        searches=len(facts.plan.searches) if facts and facts.plan else None,
        summary=str(package.root / revision.summary) if package.exists(revision.summary) else None,
    )


def _rejected(package: Package, revision: Revision, progress: Progress) -> dict[str, Any] | None:
    """Return the last reply that was refused in the stage that waits: its folder, and code, path and message."""
    if progress.event is None:
        return None
    stage = progress.event.stage
    for attempt in reversed(AttemptLog(package, revision, stage).all()):
        if attempt.outcome is not None and attempt.outcome.kind == "invalid":
            found = [(finding.code, finding.path, finding.message) for finding in attempt.outcome.findings]
            found = found or [(attempt.outcome.code or "", "", attempt.outcome.message or "")]
            return {
                "stage": stage,
                "attempt": revision.attempt(stage, attempt.number),
                "findings": [{"code": code, "path": path, "message": message} for code, path, message in found],
            }
    return None


def _replayed(package: Package, revision: Revision) -> str | None:
    for stage in CORE_STAGES:
        log = AttemptLog(package, revision, stage)
        for number in log.numbers():
            native = package.load_if(log.path(number, NATIVE), NativeRecord)
            if native is not None and (digest := replayed_from(native.headers)):
                return digest
    return None


def load_stage_facts(package: Package, revision: Revision) -> StageFacts | None:
    """Return the accepted artifacts of a package, None before its case is built and researched."""
    case = package.load_if(layout.CASE, Case)
    if case is None:
        return None
    facts = package.load_if(layout.FACTS, Facts)
    candidates = package.load_if(revision.candidates, Candidates)
    return StageFacts(
        case=case,
        facts=facts
        or Facts(
            case_digest="sha256:" + "0" * 64, binding=None, rules=(), limits=None, captures=(), sources=(), facts=()
        ),
        resolution=package.load_if(revision.resolution_input, ResolutionInput),
        plan=package.load_if(revision.plan, Plan),
        captures=load_captures(package, revision, candidates) if candidates else (),
        candidates=candidates,
        assessment=package.load_if(revision.assessment, Assessment),
    )


def derive_answered_by(package: Package, revision: Revision) -> dict[str, dict[str, Any]]:
    """Return who gave the reply that was accepted, by stage: `provider`, `model`, `resolver`, and if by `fallback`.

    A stage without such a reply is left out. Raises `IntegrityError`.
    """
    input_ = package.load_if(revision.input, InterpretationInput)
    found: dict[str, dict[str, Any]] = {}
    for policy in input_.stages if input_ else ():
        place = load_course(package, revision, policy).accepted
        if place is not None:
            who = policy.answerers[place]
            found[policy.stage] = {
                "provider": who.provider,
                "model": who.model,
                "resolver": who.resolver,
                "fallback": place > 0,
            }
    return found


def _resolver(input_: InterpretationInput | None, answered_by: Mapping[str, Mapping[str, Any]]) -> str | None:
    if input_ is None:
        return None
    resolvers = [who["resolver"] for who in answered_by.values()] or [policy.resolver for policy in input_.stages]
    return "model" if "model" in resolvers else "rules"


def _entities(facts: StageFacts) -> Iterable[dict[str, Any]]:
    cited = {entity.id: entity.mentions for entity in facts.case.entities}
    for entity in selected_groups_v1(facts, lookup_facts_v1(facts)):
        links: list[dict[str, Any]] = entity["lookup_associations"]  # type: ignore[assignment]  # as the part builds it
        names = [link["name"] for link in links] + [binding["name"] for binding in name_bindings_v1(facts, entity)]
        mentions = list(cited.get(str(entity["id"]), ()))
        for link in links:
            mentions += facts.assessment.groundings[link["search_index"]].mentions if facts.assessment else ()
        yield {
            "type": entity["type"],
            "id": entity["canonical_id"],
            "names": list(dict.fromkeys(names)),
            "origin": entity["origin"],
            "roles": [
                {"role": role, "basis": basis}
                for role, basis in dict.fromkeys((link["role"], link["role_basis"]) for link in links)
            ],
            "mentions": [_mention(facts, mention) for mention in dict.fromkeys(mentions)],
            "captures": list(dict.fromkeys(link["capture"] for link in links)),
        }


def _mention(facts: StageFacts, mention: Mention) -> dict[str, Any]:
    if mention.field is None:
        text = next(source.text for source in facts.facts.sources if source.id == mention.source)
    else:
        text = facts.case.fields.text(mention.field)
    return {
        "source": mention.source,
        "field": mention.field,
        "text": text[mention.start : mention.end],
        "start": mention.start,
        "end": mention.end,
    }


def _unresolved(facts: StageFacts) -> Iterable[dict[str, Any]]:
    if facts.assessment is None or facts.candidates is None or facts.plan is None:
        return
    for index, resolution in enumerate(facts.assessment.resolutions):
        if resolution["status"] != "selected":
            search, listed = facts.plan.searches[index], facts.candidates.searches[index]
            yield {
                "term": search["term"],
                "status": resolution["status"],
                "catalog": search["catalog"],
                "truncated": listed.truncated,
                "candidates": [{"type": row.type, "id": row.id, "name": row.name} for row in listed.candidates],
            }


def _calls(package: Package, revision: Revision) -> dict[str, int]:
    return {stage: len(AttemptLog(package, revision, stage).numbers()) for stage in CORE_STAGES}


def _tokens(package: Package, revision: Revision) -> dict[str, int | None]:
    """Return the sums that were reported; None where one call reported nothing, or what no call can have used."""
    usages: list[Usage] = []
    for stage in CORE_STAGES:
        log = AttemptLog(package, revision, stage)
        for attempt in log.all():
            arrived = attempt.outcome is not None and attempt.outcome.kind in ("accepted", "invalid")
            usages.append(log.reply(attempt.number).usage if arrived else Usage())
    return {
        "input": _sum([usage.input_tokens for usage in usages]),
        "output": _sum([usage.output_tokens for usage in usages]),
    }


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None and count >= 0]
    total = sum(known)
    return total if len(known) == len(counts) and total <= MAX_SAFE_INTEGER else None
