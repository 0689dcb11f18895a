"""One case's way: each step reads files, decides, and writes files; the next one reads those, through the package.

So a restart means looking which files exist. A step that waits has written an event that says for what. Nothing here
knows a command, a terminal or another case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from casebound.analysis import Analysis
from casebound.canonical import digest_of
from casebound.contracts.capture import EntityCapture, Facts
from casebound.contracts.case import Admission, Build, Case
from casebound.contracts.interpretation import PhaseMark
from casebound.engine import Engine
from casebound.errors import CaseboundError, ResearchError, SettingsError
from casebound.frozen import offered
from casebound.gate import Stopped
from casebound.guard import guarded
from casebound.intake.admission import read_again
from casebound.intake.build import derive_case, freeze_build
from casebound.offers import CORE_PHASES
from casebound.progress import Progress, derive_progress, latest_revision
from casebound.research.enrichment import MOST_ENTITIES, derive_facts, pairs_of
from casebound.research.snapshot import changed
from casebound.specs import EnrichmentRule
from casebound.store import layout
from casebound.store.captures import kept_captures
from casebound.store.package import Package

ENTITY_ROWS = 50


@dataclass(slots=True)
class Pipeline:
    """Takes cases forward under one set of bound settings."""

    engine: Engine
    _build: Build | None = None

    async def advance(self, package: Package, stop_after: str | None = None) -> Progress:
        """Take the case as far as it goes, or to the end of phase `stop_after`, and return where it then stands.

        Raises:
            CaseboundError: what neither waits nor is the case's own fault (settings, budget, a broken package).
        """
        before = derive_progress(package)
        if before.state in ("blocked", "review") or (before.retry_at and self.engine.clock.now() < before.retry_at):
            return before
        try:
            if before.state != "interpreted":
                await self._steps(package, stop_after)
            progress = derive_progress(package)
            await package.flush()  # a phase sees it on the disk
            if progress.state == "interpreted":
                await self._phases(package, stop_after)
        except (CaseboundError, Stopped):
            await package.flush()  # here, where nobody else waits for it
            raise
        return progress

    async def _steps(self, package: Package, stop_after: str | None) -> None:
        if stop_after == "admission":
            return
        case = self._construct(package)
        if stop_after == "construction":
            return
        facts = await self._research(package, case)
        if facts is None or stop_after == "research":
            return
        await Analysis(self.engine, package, case, facts).run()

    def _construct(self, package: Package) -> Case:
        bound = self.engine.bound
        self.engine.on_step(package, "construction")
        admission = package.load(layout.ADMISSION, Admission)
        build = package.load_if(layout.BUILD, Build)
        if build is None:
            # The same for every case under these settings, and by far the largest table in one.
            build = self._build = self._build or freeze_build(bound.references, bound.headings)
            package.create_artifact(layout.BUILD, build)
        case = package.load_if(layout.CASE, Case)
        if case is None:
            report = read_again(
                package.require(layout.source(admission.file)), admission, self.engine.bound.host.readers
            )
            case = derive_case(admission, report, build)
            package.create_artifact(layout.CASE, case)
        return case

    async def _research(self, package: Package, case: Case) -> Facts | None:
        facts = package.load_if(layout.FACTS, Facts)
        if facts is not None:
            return facts
        self.engine.on_step(package, "research")
        try:
            fetched, captures = await self._facts(package, case)
        except ResearchError as exc:
            self.engine.block(package, "research", exc)
            return None
        except SettingsError as exc:
            raise exc.placed(str(self.engine.bound.settings.path)) from None
        for capture in captures:
            package.create_artifact(layout.entity_capture(digest_of(capture.to_bytes())), capture)
        package.create_artifact(layout.FACTS, fetched)
        return fetched

    async def _facts(self, package: Package, case: Case) -> tuple[Facts, Sequence[EntityCapture]]:
        """Return the facts and their captures; the database is asked only where a rule wants something."""
        types = {entity.type for entity in case.entities[:MOST_ENTITIES]}
        rules = [rule for rule in self.engine.bound.enrichments if rule.entity_type in types]
        if not rules:
            return derive_facts(case, None, (), {}, None), ()
        kept = kept_captures(package, layout.ENTITY_CAPTURES, EntityCapture)
        return await self.engine.look_up(lambda: self._fetch(case, rules, kept))

    def _fetch(
        self, case: Case, rules: Sequence[EnrichmentRule], kept: Sequence[EntityCapture]
    ) -> tuple[Facts, Sequence[EntityCapture]]:
        """Return what `rules` fetch, with captures; what a run that ended early has `kept` is not asked for again."""
        source = self.engine.source()
        frozen = [source.freeze_rule(rule) for rule in rules]
        pairs = pairs_of(case, frozen)
        captures = {(capture.rule, capture.entity_id): capture for capture in kept}
        self._refuse_other_facts([f"the rule {rule.name}" for rule, number in captures if (rule, number) not in pairs])
        missing = [pair for pair in pairs if pair not in captures]
        captures |= zip(missing, source.entity_rows_all(missing, ENTITY_ROWS), strict=True)
        first = captures[pairs[0]]
        self._refuse_other_facts(
            [text for capture in captures.values() for text in changed(first.binding, capture.binding)]
        )
        by_pair = {(rule.name, number): captures[rule, number] for rule, number in pairs}
        facts = derive_facts(case, first.binding, frozen, by_pair, first.limits)
        return facts, [captures[pair] for pair in pairs]

    def _refuse_other_facts(self, differences: Sequence[str]) -> None:
        self.engine.refuse_change(differences, hint="put them back, or resolve the report with --package-id")

    async def _phases(self, package: Package, stop_after: str | None) -> None:
        """Run what plugins put behind the newest interpretation, each to its end once, as `stop_after` allows."""
        if stop_after in CORE_PHASES:
            return
        host, revision = self.engine.bound.host, latest_revision(package)
        for name, phase in host.phases.items():
            done = layout.phase_mark(name, revision)
            if not package.exists(done):
                self.engine.on_step(package, name)
                run: Callable[[Path], object] = host.load_named("phases", name, phase.run)
                await asyncio.to_thread(partial(guarded(run, object, f"phase {name}"), package.root))
                package.look_again()  # it may have written files
                mark = PhaseMark(phase=name, offered_by=offered(host, "phases", name))
                package.create_artifact(done, mark)
                await package.flush()  # the next one may take long, and this one is never run again
            if stop_after == name:
                return
