"""A link, derived again from its own bytes and from the two packages that it binds; nothing is asked.

It proves that the files of a link follow from each other: not that a suggestion is right, nor who decided.
"""

from __future__ import annotations

from collections.abc import Sequence

from casebound.contracts.interpretation import SealedFile
from casebound.errors import IntegrityError, SettingsError
from casebound.frozen import find_protocol, find_rules
from casebound.host import Host
from casebound.specs import PromptProtocol
from casebound.store import Workspace
from casebound.verification.attempt_steps import verify_stage
from casebound.verification.evidence import Evidence, Stop
from casebound.verification.revision_steps import verify_events
from casebound.verification.verification import Answer, Verification, failures_noted, verify_package

from casebound_entity_link import layout
from casebound_entity_link.codes import DAMAGED
from casebound_entity_link.contracts import Decision, LinkedEntity, LinkInput
from casebound_entity_link.link import Link
from casebound_entity_link.sides import derive_side
from casebound_entity_link.suggestion import derive_suggestion


def verify_link(link: Link, workspace: Workspace, host: Host) -> Verification:
    """Verify one link; `workspace` holds the packages of both sides.

    Raises:
        SettingsError: the link cannot be read (`PACKAGE_UNREADABLE`).
    """
    return _verified(link, workspace, host)


def require_whole(link: Link, host: Host) -> None:
    """Refuse a link whose own folder does not hold; the packages of its sides are not looked at.

    Raises:
        IntegrityError: `ENTITY_LINK_DAMAGED`, with the first finding.
        SettingsError: the link cannot be read (`PACKAGE_UNREADABLE`).
    """
    verification = _verified(link, None, host)
    if verification.answer == "does_not_hold":
        first = verification.findings[0]
        found, path = f"{first.code}: {first.message}", f"{link.package.root}/{first.file}"
        raise IntegrityError(DAMAGED, path=path, pointer=first.pointer or None, found=found)


def _verified(link: Link, workspace: Workspace | None, host: Host) -> Verification:
    evidence = Evidence(link.package.root)
    with failures_noted(evidence, layout.INPUT):
        _verify(evidence, link.name, workspace, host)
    if not evidence.findings:
        for path in evidence.unexplained():
            evidence.note("VERIFY_EXTRA", path, "nothing in the link leads to it")
    return Verification(str(link.package.root), _answer(evidence), tuple(evidence.findings), len(evidence.paths))


def _answer(evidence: Evidence) -> Answer:
    if evidence.findings:
        return "does_not_hold"
    return "holds" if evidence.has(layout.SUGGESTION) else "unfinished"


def _verify(evidence: Evidence, name: str, workspace: Workspace | None, host: Host) -> None:
    input_ = evidence.load(layout.INPUT, LinkInput)
    if layout.folder_name(input_.question) != name:
        evidence.note("STORE_DIGEST", layout.INPUT, "it is not what the folder's name says")
    protocol = find_protocol(host, input_.policy.protocol)
    if workspace is not None:
        _verify_sides(evidence, input_, protocol, workspace, host)
    verify_events(evidence, layout.PATHS)
    rules = find_rules(host, input_.policy)
    reply = verify_stage(evidence, layout.PATHS, input_.policy, protocol, rules, input_.context)
    if evidence.has(layout.SUGGESTION):
        if reply is None:
            evidence.note("VERIFY_DERIVED", layout.SUGGESTION, "no attempt was accepted")
            raise Stop
        evidence.compare(layout.SUGGESTION, derive_suggestion(input_, protocol, reply, _sealed(evidence)))
    _verify_decisions(evidence)


def _sealed(evidence: Evidence) -> list[SealedFile]:
    """Return what stands in the folder beside the suggestion and the decisions."""
    seen = ((path, evidence.seen(path)) for path in evidence.paths if layout.is_sealed(path))
    return [SealedFile(path=path, size=found[0], digest=found[1]) for path, found in seen if found is not None]


def _verify_sides(
    evidence: Evidence, input_: LinkInput, protocol: PromptProtocol, workspace: Workspace, host: Host
) -> None:
    sides = {
        name: _derived_side(evidence, f"/{name}", linked, workspace, host)
        for name, linked in (("left", input_.left), ("right", input_.right))
    }
    if None not in sides.values() and protocol.context(sides) != input_.context:
        message = "it is not what follows from the packages of both sides"
        evidence.note("VERIFY_DERIVED", layout.INPUT, message, "/context")


def _derived_side(
    evidence: Evidence, pointer: str, linked: LinkedEntity, workspace: Workspace, host: Host
) -> dict[str, object] | None:
    """Return a side as it follows from its package; None where that package is not what was bound, which is noted."""
    package = workspace.package(linked.package_id)
    try:
        verification = verify_package(package.root, host)
    except SettingsError as exc:
        evidence.note(exc.code, layout.INPUT, f"package {linked.package_id}: {exc.found}", f"{pointer}/package_id")
        return None
    if verification.answer == "does_not_hold":
        message = f"package {linked.package_id} does not hold: {_first(verification)}"
        evidence.note("VERIFY_BINDING", layout.INPUT, message, f"{pointer}/package_id")
        return None
    found = package.digest(linked.seal) if package.exists(linked.seal) else None
    evidence.expect(layout.INPUT, f"{pointer}/seal_digest", linked.seal_digest, found)
    return derive_side(package, linked) if found == linked.seal_digest else None


def _first(verification: Verification) -> str:
    return f"{verification.findings[0].code} {verification.findings[0].file}"


def _verify_decisions(evidence: Evidence) -> None:
    """Verify that every decision is about this suggestion, and that none is missing before a later one."""
    before: str | None = None
    for place, path in enumerate(_paths_of_decisions(evidence)):
        if path != layout.decision(place + 1):
            evidence.note("STORE_MISSING", layout.decision(place + 1), "a decision is missing before a later one")
        decided = evidence.load(path, Decision)
        evidence.expect(path, "/suggestion", decided.suggestion, evidence.digest(layout.SUGGESTION))
        evidence.expect(path, "/supersedes", decided.supersedes, before)
        before = evidence.digest(path)


def _paths_of_decisions(evidence: Evidence) -> Sequence[str]:
    names = [path.removeprefix(f"{layout.DECISIONS}/") for path in evidence.below(layout.DECISIONS)]
    return [layout.decision(number) for number in layout.decision_numbers(names)]
