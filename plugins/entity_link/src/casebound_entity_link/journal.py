"""The journal of a workspace: links are proposed, suggestions admitted, and people's decisions appended.

Rules:
- The input is frozen first, each request before it is sent, the native reply before anything is derived from it
  (`casebound.llm.stage`). A command that was killed anywhere goes on with `propose`; a reply that arrived is never paid
  for again.
- One process at a time works on a link. Files are created once; a later decision supersedes an earlier one by being
  the last, nothing is overwritten.
- Nothing is built on a link whose own folder does not hold.
- A suggestion merges nothing: no case, no entity and no other link is changed by it, nor by a decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from casebound.api import Project, verify
from casebound.binding import Bound, bind_stage
from casebound.budget import Purse
from casebound.canonical import digest_of
from casebound.clock import format_time
from casebound.contracts.interpretation import Event, SealedFile
from casebound.engine import Engine
from casebound.errors import SettingsError
from casebound.frozen import find_protocol, find_rules
from casebound.interpretation.freeze import freeze_policy
from casebound.llm.stage import Conversation, converse
from casebound.loop import Loop
from casebound.prices import Prices
from casebound.protocol_choice import default_protocol
from casebound.store import Package
from casebound.store.layout import ConversationPaths
from casebound.store.lock import exclusive

from casebound_entity_link import layout
from casebound_entity_link.codes import EXHAUSTED, NO_SUGGESTION, SUBJECT, UNKNOWN_LINK
from casebound_entity_link.contracts import Decision, LinkedEntity, LinkInput, Verdict
from casebound_entity_link.link import Damaged, Link, LinkFolder, looked_at, whole_paths
from casebound_entity_link.sides import Wanted, bind_side, derive_side
from casebound_entity_link.suggestion import derive_suggestion
from casebound_entity_link.verification import require_whole

LEAST_PREFIX = 6
MOST_TEXT = 20_000


@dataclass(slots=True)
class Journal:
    """The links of a project's workspace; `close` it after the last proposal."""

    project: Project
    _engine: Engine | None = None
    _loop: Loop = field(default_factory=Loop)

    # --- reading ----------------------------------------------------------------------------------------------------

    def links(self) -> Iterator[Link]:
        """Yield every link of the workspace, in the order of names; nobody has looked whether it can be read."""
        folder = Package(self.project.workspace.root, workspace=self.project.workspace.root)
        for name in folder.names(layout.LINKS):
            if layout.is_link(name) and (link := self._link(name)).is_begun():
                yield link

    def survey(self) -> Iterator[Link | Damaged]:
        """Yield every link, in the order of names; one that cannot be read says so, and hides no other."""
        return map(looked_at, self.links())

    def find(self, name: str) -> Link:
        """Return the link of that name: its digest, or at least six digits of its beginning.

        Raises:
            SettingsError: `ENTITY_LINK_UNKNOWN`: there is none, or several begin so.
        """
        digits = name.removeprefix("sha256-").removeprefix("sha256:")
        found = [link for link in self.links() if link.name.removeprefix("sha256-").startswith(digits)]
        if len(digits) >= LEAST_PREFIX and len(found) == 1:
            return found[0]
        known = [link.name for link in self.links()]
        raise SettingsError(UNKNOWN_LINK, path=str(self.project.workspace.root), found=repr(name), allowed=known)

    def _link(self, name: str) -> Link:
        root = self.project.workspace.root
        return Link(LinkFolder(root / layout.LINKS / name, workspace=root))

    # --- proposing --------------------------------------------------------------------------------------------------

    def propose(self, left: Wanted, right: Wanted, *, resume: bool = False) -> Link:
        """Ask whether two entities are one object, as far as it goes; a link that is there goes on, or is returned.

        Args:
            left: one side; its order is part of the link.
            right: the other side.
            resume: let a blocked link go on.

        Raises:
            SettingsError: `CASE_UNKNOWN`, `ENTITY_LINK_SUBJECT`, `RETRY_LATER`, `BUDGET_REACHED`, or a key that is
                missing; before anything is written where it concerns the sides or the settings.
            IntegrityError: the link is there and does not hold (`ENTITY_LINK_DAMAGED`).
            UnavailableError: another process works on this link (`CASE_BUSY`).
        """
        engine = self._opened()
        input_ = self._freeze(engine.bound, left, right)
        engine.prepare_providers()
        link = self._link(layout.folder_name(input_.question))
        self.project.workspace.prepare()
        self.project.workspace.admit(link.package)
        with exclusive(link.package), whole_paths(link.package):
            self._begin(link, input_)
            self._go_on(engine, link, resume)
        return link

    def close(self) -> None:
        """Let go of the connections of the providers that were built for links."""
        if self._engine is not None:
            self._engine.providers.clear()  # the project closes those of the caller
            self._loop.run(self._engine.aclose())
            self._engine = None
        self._loop.close()

    def _opened(self) -> Engine:
        if self._engine is None:
            bound = bind_links(self.project)
            purse = Purse(self.project.settings.budget, Prices(bound), _conversations, "link")
            own = {stage: one for stage, one in self.project.providers.items() if stage in bound.stages}
            self._engine = Engine(bound, self.project.clock, purse, own)
        return self._engine

    def _freeze(self, bound: Bound, left: Wanted, right: Wanted) -> LinkInput:
        sides = [self._side(wanted) for wanted in (left, right)]
        if sides[0][0].model_copy(update={"mentions": ()}) == sides[1][0].model_copy(update={"mentions": ()}):
            raise SettingsError(SUBJECT, found=f"{sides[0][1]['entityId']} on both sides", expected="two entities")
        protocol = bound.protocols[layout.STAGE]
        return LinkInput(
            left=sides[0][0],
            right=sides[1][0],
            policy=freeze_policy(
                bound, layout.STAGE, bound.stages[layout.STAGE], bound.settings.interpretation.max_invalid_responses
            ),
            context=protocol.context({"left": sides[0][1], "right": sides[1][1]}),
        )

    def _side(self, wanted: Wanted) -> tuple[LinkedEntity, dict[str, object]]:
        """Return a side, of a package that holds: what a suggestion rests on must be what was accepted."""
        package = self.project.workspace.find(wanted.case)
        verification = verify(package.root, host=self.project.host)
        if verification.answer == "does_not_hold":
            first = verification.findings[0]
            raise SettingsError(
                SUBJECT,
                path=str(package.root),
                found=f"a package that does not hold: {first.code} {first.file}",
                hint=f"`casebound verify {package.root}` says why",
            )
        linked = bind_side(package, wanted)
        return linked, derive_side(package, linked)

    def _begin(self, link: Link, input_: LinkInput) -> None:
        """Freeze the input of a new link; refuse one that has begun, finished or not, and does not hold."""
        if link.is_begun():
            require_whole(link, self.project.host)
        else:
            link.package.create_artifact(layout.INPUT, input_)

    def _go_on(self, engine: Engine, link: Link, resume: bool) -> None:
        """Ask until a suggestion is admitted, or the link waits; one that waits already is left alone."""
        event = link.waiting()
        if link.suggestion is not None or (event and event.kind == "review"):
            return
        early = link.retry_at is not None and self.project.clock.now() < link.retry_at
        if event and resume and early:
            now = format_time(self.project.clock.now())
            found, expected = f"state {link.state}, {event.code}, now {now}", f"{event.retry_at} or later"
            raise SettingsError("RETRY_LATER", path=str(link.package.root), found=found, expected=expected)
        if event and (early or (event.kind == "blocked" and not resume)):
            return
        if event and event.kind == "blocked":
            link.events.append(self._resumption(event))
        reply = self._loop.run(converse(self._conversation(engine, link)))
        if reply is not None:
            protocol = find_protocol(engine.bound.host, link.input.policy.protocol)
            files = ((path, link.package.require(path)) for path in link.package.paths() if layout.is_sealed(path))
            sealed = [SealedFile(path=path, size=len(data), digest=digest_of(data)) for path, data in files]
            link.package.create_artifact(layout.SUGGESTION, derive_suggestion(link.input, protocol, reply, sealed))

    def _conversation(self, engine: Engine, link: Link) -> Conversation:
        host, policy = engine.bound.host, link.input.policy
        return Conversation(
            package=link.package,
            revision=layout.PATHS,
            policy=policy,
            protocol=find_protocol(host, policy.protocol),
            rules=find_rules(host, policy),
            context=link.input.context,
            provider=lambda place: engine.provider(layout.STAGE, place),
            clock=engine.clock,
            permit=lambda request, place: engine.permit(link.package, request, place),
            exhausted=EXHAUSTED,
        )

    def _resumption(self, event: Event) -> Event:
        at = format_time(self.project.clock.now())
        return event.model_copy(
            update={"kind": "resumed", "at": at, "retry_at": None, "detail": "resumed by the operator"}
        )

    # --- deciding ---------------------------------------------------------------------------------------------------

    def decide(self, name: str, verdict: Verdict, *, rationale: str, by: str) -> Link:
        """Append what a person decided about a suggestion; the last decision counts, earlier ones stay.

        Raises:
            SettingsError: `ENTITY_LINK_UNKNOWN`; `ENTITY_LINK_NO_SUGGESTION`; `USAGE` for an empty rationale or name.
            IntegrityError: the link does not hold (`ENTITY_LINK_DAMAGED`); nothing is appended.
            UnavailableError: another process works on this link (`CASE_BUSY`).
        """
        for option, text in (("--rationale", rationale), ("--by", by)):
            _check_text(option, text)
        link = self.find(name)
        self.project.workspace.prepare()
        with exclusive(link.package):
            if not link.package.exists(layout.SUGGESTION):
                raise SettingsError(NO_SUGGESTION, path=str(link.package.root), found=f"state {link.state}")
            require_whole(link, self.project.host)
            numbers = link.decision_numbers()
            link.package.create_artifact(
                layout.decision(numbers[-1] + 1 if numbers else 1),
                Decision(
                    decision=verdict,
                    rationale=rationale,
                    decided_by=by,
                    at=format_time(self.project.clock.now()),
                    suggestion=link.package.digest(layout.SUGGESTION),
                    supersedes=link.package.digest(layout.decision(numbers[-1])) if numbers else None,
                ),
            )
        return link


def bind_links(project: Project) -> Bound:
    """Return the project's settings with stage `entity_link` as its only one: `[llm]`, overlaid by its own table.

    Raises:
        SettingsError: the provider is not installed, or its own settings do not hold.
        PluginError: nobody offers a protocol of the stage.
    """
    return replace(
        project.bound,
        stages={layout.STAGE: bind_stage(project.settings, project.host, layout.STAGE)},
        protocols={layout.STAGE: default_protocol(project.host, layout.STAGE)},
    )


def _conversations(package: Package) -> list[tuple[ConversationPaths, str]]:
    """Return the one conversation of a link: what a case may cost, a link may cost."""
    return [(layout.PATHS, layout.STAGE)]


def _check_text(option: str, text: str) -> None:
    """Refuse what is no text that a person wrote. Raises `SettingsError` (`USAGE`)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SettingsError("USAGE", pointer=option, found="bytes that are no UTF-8") from None
    if not text.strip() or len(text) > MOST_TEXT or "\0" in text:
        found = "nothing" if not text.strip() else f"{len(text)} characters"
        expected = f"a text of at most {MOST_TEXT} characters, without NUL"
        raise SettingsError("USAGE", pointer=option, found=found, expected=expected)
