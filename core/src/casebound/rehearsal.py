"""What would another version have said? The recorded replies of a package, judged once more; nothing is written.

Rules:
- A reply is judged in the context that the version derives from the accepted artifacts of the package, as far as they
  stood before the stage; what the version would have asked, and the model would then have answered, nobody knows.
- The version brings its own schema and rules. Rules that plugins had added when the case was frozen are kept beside
  them, exactly those; rules that came later take no part.
- Where no version is named, the frozen one judges, and must say what was recorded.
- An attempt without a readable reply (an error of the server, a call that is unknown) is listed, and not judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from casebound.contracts.case import Admission
from casebound.contracts.findings import Finding
from casebound.contracts.interpretation import InterpretationInput, StagePolicy
from casebound.contracts.model_call import ModelReply, Outcome, OutcomeKind
from casebound.contracts.stage_facts import StageFacts
from casebound.errors import IntegrityError, SettingsError
from casebound.frozen import find_protocol, find_rules, freeze_protocol
from casebound.host import Host
from casebound.llm.attempts import REPLY, AttemptLog
from casebound.llm.judge import judge
from casebound.progress import latest_revision
from casebound.protocol_choice import numbered_protocol
from casebound.result import contradictions_told, load_stage_facts
from casebound.specs import PromptProtocol, RuleRef, Validator
from casebound.store import layout
from casebound.store.layout import Revision
from casebound.store.package import Package

# Recorded replies say nothing of what a model would answer under another version: only a fresh run with it does.
LIVE_QUALITY = "not_evaluated"


@dataclass(frozen=True, slots=True)
class Judgment:
    """What became of an attempt, or would have: kind and code as in `outcome.json`, and what the rules found."""

    kind: OutcomeKind
    code: str | None
    findings: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the judgment as JSON data; of each finding code, path and message."""
        found = [{"code": item.code, "path": item.path, "message": item.message} for item in self.findings]
        return {"outcome": self.kind, "code": self.code, "findings": found}


@dataclass(frozen=True, slots=True)
class RehearsedAttempt:
    """One attempt. `recorded` is None where nothing was decided, `rehearsed` where there is no reply to judge."""

    number: int
    recorded: Judgment | None
    rehearsed: Judgment | None

    @property
    def agrees(self) -> bool:
        """Whether both say the same, or there is nothing to compare."""
        return self.recorded is None or self.rehearsed is None or self.recorded == self.rehearsed

    def to_json(self) -> dict[str, object]:
        """Return the attempt as JSON data."""
        return {
            "attempt": self.number,
            "recorded": self.recorded and self.recorded.to_json(),
            "rehearsed": self.rehearsed and self.rehearsed.to_json(),
        }


@dataclass(frozen=True, slots=True)
class RehearsedStage:
    """The attempts of one stage.

    Attributes:
        frozen: the version that the case froze.
        version: the one that judged now.
        rules: those that judged now, `CODE/REVISION`, in order.
    """

    stage: str
    frozen: int
    version: int
    rules: tuple[str, ...]
    attempts: tuple[RehearsedAttempt, ...]

    def to_json(self) -> dict[str, object]:
        """Return the stage as JSON data."""
        return {
            "stage": self.stage,
            "frozen": self.frozen,
            "version": self.version,
            "rules": list(self.rules),
            "attempts": [attempt.to_json() for attempt in self.attempts],
        }


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What was recorded and what was found now, by stage and attempt.

    Attributes:
        what_if: whether a version was named; else the frozen ones judged, and must agree.
    """

    package: str
    case_id: str
    what_if: bool
    stages: tuple[RehearsedStage, ...]

    @property
    def agrees(self) -> bool:
        """Whether every reply that was judged again got the recorded judgment."""
        return all(attempt.agrees for stage in self.stages for attempt in stage.attempts)

    @property
    def unjudged(self) -> int:
        """How many attempts left no reply to judge."""
        return sum(attempt.rehearsed is None for stage in self.stages for attempt in stage.attempts)

    @property
    def exit_status(self) -> int:
        """The documented exit status: 1 where the frozen versions say otherwise than was recorded."""
        return 0 if self.what_if or self.agrees else 1

    def to_json(self) -> dict[str, object]:
        """Return the rehearsal as JSON data."""
        return {
            "package": self.package,
            "case_id": self.case_id,
            "agrees": self.agrees,
            "live_quality": LIVE_QUALITY,
            "stages": [stage.to_json() for stage in self.stages],
        }


def rehearse_package(
    root: Path, host: Host, *, interpretation: int | None = None, resolution: int | None = None
) -> Rehearsal:
    """Judge the recorded replies of the latest interpretation in the package at `root` once more.

    Args:
        root: the folder that holds `package.json`.
        host: the plugins whose versions and rules take part.
        interpretation: the version to judge interpretations by; None: the frozen one.
        resolution: the version to judge plans and assessments by; None: the frozen one.

    Raises:
        SettingsError: `PACKAGE_UNREADABLE`; `REPLAY_SOURCE` for a package without replies; `SETTINGS_NAME` for a
            version that nobody offers, or that the case has no use for.
        PluginError: `PLUGIN_MISSING`: a frozen version or rule is not installed.
        IntegrityError: a file that is needed is missing or broken.
    """
    package = Package(root)
    if not package.exists(layout.PACKAGE):
        raise SettingsError("PACKAGE_UNREADABLE", path=str(root), found="no package.json")
    with contradictions_told(package):
        input_ = package.load_if(latest_revision(package).input, InterpretationInput)
        if input_ is None:
            raise SettingsError("REPLAY_SOURCE", path=str(root), found="a package without any reply")
        wanted = {"plan": resolution, "assessment": resolution, "interpretation": interpretation}
        chosen = _choose(host, input_, wanted)
        rules = {policy.stage: _rules(host, policy, chosen[policy.stage]) for policy in input_.stages}
        return Rehearsal(
            package=str(root),
            case_id=package.load(layout.ADMISSION, Admission).case_id,
            what_if=interpretation is not None or resolution is not None,
            stages=tuple(
                _rehearse_stage(package, input_, stage, protocol, rules[stage]) for stage, protocol in chosen.items()
            ),
        )


# --- which version ----------------------------------------------------------------------------------------------------


def _choose(host: Host, input_: InterpretationInput, wanted: Mapping[str, int | None]) -> dict[str, PromptProtocol]:
    """Return the protocol that judges each stage of the case. Raises as `rehearse_package`."""
    chosen = {policy.stage: policy.protocol for policy in input_.stages}
    for stage, version in wanted.items():
        if version is None:
            continue
        option = "--interpretation-protocol" if stage == "interpretation" else "--resolution-protocol"
        if input_.resolution_input is None:
            found = f"version {version} for a case without resolution, whose one plain prompt has no number"
            raise SettingsError("SETTINGS_NAME", pointer=option, found=found, hint="leave the option out")
        chosen[stage] = freeze_protocol(host, numbered_protocol(host, stage, version, pointer=option))
    return {stage: find_protocol(host, frozen) for stage, frozen in chosen.items()}


def _rules(host: Host, policy: StagePolicy, protocol: PromptProtocol) -> tuple[Validator, ...]:
    """Return the rules of `protocol`, then those of plugins that the case froze beside its own version's."""
    then = find_protocol(host, policy.protocol).rules
    frozen = ((RuleRef(rule.code, rule.revision), rule) for rule in find_rules(host, policy))
    kept = (rule for ref, rule in frozen if ref not in then and ref not in protocol.rules)
    return (*host.validators_of(policy.stage, protocol.rules), *kept)


# --- one stage --------------------------------------------------------------------------------------------------------


def _rehearse_stage(
    package: Package, input_: InterpretationInput, stage: str, protocol: PromptProtocol, rules: Sequence[Validator]
) -> RehearsedStage:
    revision = latest_revision(package)
    log = AttemptLog(package, revision, stage)
    attempts = log.all()
    context = protocol.context(_facts_before(package, revision, input_, stage)) if attempts else {}
    return RehearsedStage(
        stage=stage,
        frozen=input_.policy(stage).protocol.version,
        version=protocol.version,
        rules=tuple(f"{rule.code}/{rule.revision}" for rule in rules),
        attempts=tuple(
            RehearsedAttempt(
                attempt.number,
                _recorded(attempt.outcome),
                _judged(package.load_if(log.path(attempt.number, REPLY), ModelReply), protocol, rules, context),
            )
            for attempt in attempts
        ),
    )


def _recorded(outcome: Outcome | None) -> Judgment | None:
    return None if outcome is None else Judgment(outcome.kind, outcome.code, outcome.findings)


def _judged(
    reply: ModelReply | None, protocol: PromptProtocol, rules: Sequence[Validator], context: Mapping[str, object]
) -> Judgment | None:
    if reply is None:
        return None
    findings = judge(reply, protocol.response_schema(context), rules, context).findings
    return Judgment("invalid", findings[0].code, findings) if findings else Judgment("accepted", None)


def _facts_before(package: Package, revision: Revision, input_: InterpretationInput, stage: str) -> StageFacts:
    """Return the accepted artifacts that stood before a stage. Raises `IntegrityError` where one is missing."""
    package.require(layout.FACTS)
    if input_.resolution_input is not None:
        last = {"plan": revision.resolution_input, "assessment": revision.candidates}
        package.require(last.get(stage, revision.assessment))
    facts = load_stage_facts(package, revision)
    if facts is None:
        raise IntegrityError("STORE_MISSING", path=layout.CASE)
    if stage == "plan":
        return StageFacts(facts.case, facts.facts, facts.resolution)
    return replace(facts, assessment=None) if stage == "assessment" else facts
