"""A reviewed bundle of the small benchmark, and live runs of it with the scribe: for tests of the kit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from casebound import live_runs
from casebound.bench.bundle import Bundle, load_bundle, write_bundle
from casebound.bench.instrument import open_instrument
from casebound.bench.live import Execution
from casebound.bench.live_folder import LiveFolder
from casebound.bench.live_plan import Selection, planned_executor
from casebound.bench.measurement import Measurement, Sources, freeze_measurement, with_receipts
from casebound.bench.receipts import author_template
from casebound.binding import build_provider
from casebound.contracts.bench_live import LivePlan
from casebound.host import Host
from casebound.llm.provider import Provider
from casebound.testing.scribe import SCRIBE
from casebound.testing.scripted import FixedClock
from casebound.testing.small_benchmark import small_host

REVIEWED = "2026-10-31T08:00:00.000Z"
SPLIT = "tuning"
# The first notes of the two cases of that split, in their order.
FIRST, SECOND = "The printer in room four prints blank pages.", "The north door does not lock."
NOW = datetime(2026, 11, 1, 8, tzinfo=UTC)


@dataclass(slots=True)
class LiveTrial:
    """A folder outside every repository with a bundle, and what may be run of it.

    Attributes:
        folder: holds bundle, logs and runs.
        host: knows the small benchmark and the scribe.
        clock: after the author's review.
    """

    folder: Path
    host: Host = field(default_factory=lambda: small_host(SCRIBE))
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOW))

    @property
    def log(self) -> Path:
        """What the model's server logged."""
        return self.folder / "server.log"

    @property
    def bundle_path(self) -> Path:
        """Where the bundle is."""
        return self.folder / "bundle"

    @property
    def bundle(self) -> Bundle:
        """The bundle, read anew."""
        return load_bundle(self.bundle_path, self.host, self.clock.now())

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases of the split."""
        return tuple(case.case_id for case in self.bundle.measurement.corpus.corpus.in_split(SPLIT))

    def write_bundle(self, decision: str | None = "approved") -> None:
        """Write a bundle with the author's receipt; `decision` None: without one."""
        instrument = open_instrument(self.host, "small")
        measurement = freeze_measurement(instrument, Sources(), self.clock.now())
        if decision is not None:
            receipt = self.folder / "author-review.json"
            receipt.write_text(json.dumps(_filled(author_template(measurement.scope), measurement, decision)))
            measurement = with_receipts(measurement, receipt, None, self.clock.now())
        write_bundle(self.bundle_path, measurement, lambda *_: "<!doctype html>")

    def order(
        self, name: str = "run", *, cases: tuple[str, ...] | None = None, model: str = "tiny-1", **settings: object
    ) -> live_runs.Order:
        """Return the order of a run below the folder; `settings` are the scribe's."""
        chosen = self.cases if cases is None else cases
        config = self.folder / f"{name}.toml"
        config.write_text(_toml({"log": str(self.log), **settings}))
        return live_runs.Order(
            bundle=self.bundle_path,
            out=self.folder / name,
            selection=Selection(SPLIT, chosen, len(chosen)),
            executor="scribe",
            model=model,
            llm_config=config,
        )

    def prepare(self, name: str = "run", **choices: object) -> LivePlan:
        """Prepare a run; see `order`."""
        return live_runs.prepare(self.order(name, **choices), host=self.host, clock=self.clock)  # type: ignore[arg-type]  # as `order` takes them

    def execution(self, name: str = "run") -> Execution:
        """Return one process at work on a prepared run, past the comparison of what is installed."""
        folder = LiveFolder(self.folder / name, writing=True)
        plan = folder.plan()
        provider: Provider = build_provider(planned_executor(plan, self.host, folder.root), self.host, folder.root)
        return Execution(folder, plan, self.bundle.measurement.subject, provider, self.clock)

    def files(self, name: str = "run") -> dict[str, bytes]:
        """Return every file of a run but temporary ones."""
        root = self.folder / name
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file() and "tmp" not in path.relative_to(root).parts
        }


def _filled(form: dict[str, object], measurement: Measurement, decision: str) -> dict[str, object]:
    decisions = form["decisions"]
    assert isinstance(decisions, list)
    return {
        **form,
        "reviewer": measurement.corpus.corpus.authors[0],
        "reviewedAt": REVIEWED,
        "reviewedBeforeOutputs": True,
        "decisions": [{**each, "decision": decision, "rationale": "read"} for each in decisions],
    }


def _toml(settings: Mapping[str, object]) -> str:
    """Return an `[llm]` table with the scribe's own; JSON texts are TOML texts too."""
    lines = ["[llm]", "max_output_tokens = 512", "[llm.scribe]"]
    for name, value in settings.items():
        if isinstance(value, dict):
            pairs = ", ".join(f"{json.dumps(key)} = {json.dumps(text)}" for key, text in value.items())
            lines.append(f"{name} = {{{pairs}}}")
        else:
            lines.append(f"{name} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"
