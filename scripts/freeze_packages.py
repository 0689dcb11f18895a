"""Write the golden package of every pair of protocol versions that has none yet. Whatever exists is never touched.

    python scripts/freeze_packages.py

    tests/golden/packages/<release>/inventory.db, report.md           what the run rested on
    tests/golden/packages/<release>/<resolution>-<interpretation>/
        casebound.toml                                                the settings, with both versions pinned
        order.json                                                    every file of the package, as it was created
        package/                                                      the package

The run meets a rejected reply in each stage, and a model server that is away for a minute. Its clock stands still.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from casebound import __version__
from casebound.canonical import canonical_bytes
from casebound.contracts.model_call import ModelRequest, NativeReply
from casebound.errors import ProviderError
from casebound.testing.faults import watch
from casebound.testing.inventory import Inventory, settings_text, write_database, write_inventory
from casebound.testing.inventory_model import USAGE, InventoryModel, Search
from casebound.testing.scripted import native_reply

ROOT = Path(__file__).parent.parent / "tests" / "golden" / "packages"
PAIRS = ((1, 1), (2, 1), (2, 2), (2, 3), (2, 4), (3, 5), (3, 6), (4, 6))
RETRY_S = 60
REPORT = """\
---
id: INC-7
title: edge-proxy and batch-runner fail during service 431
---

## Current behaviour

While service=431 was running, edge-proxy (in German: Randvermittler (alt)) and host=13, the batch-runner, fell silent.
So did mail-relay, every worker-0, the quarantine-host, and service 440.

## Expected behaviour

edge-proxy answers within two seconds.

<!-- Take host 21. -->
"""
SEARCHES: tuple[Search, ...] = (
    ("inventory.host", "edge-proxy", "affected_subject"),
    ("inventory.host_locale", "Randvermittler (alt)", "affected_subject"),
    ("inventory.host", "batch-runner", "participant"),
    ("inventory.host", "mail-relay", "participant"),
    ("inventory.host", "worker-0", "context"),
    ("inventory.host", "quarantine-host", "context"),
)


def main() -> None:
    """Freeze what is not frozen."""
    release = ROOT / __version__
    for pair in PAIRS:
        folder = release / "{}-{}".format(*pair)
        if not folder.exists():
            print(folder.relative_to(ROOT))
            freeze(release, folder, pair)


def freeze(release: Path, folder: Path, pair: tuple[int, int]) -> None:
    release.mkdir(parents=True, exist_ok=True)
    database, report = release / "inventory.db", release / "report.md"
    if not database.exists():
        write_database(database)
        report.write_text(REPORT, encoding="utf-8")
    settings = settings_of(*pair)
    with TemporaryDirectory() as temporary:
        inventory = write_inventory(Path(temporary), settings=settings, report=report.read_text(encoding="utf-8"))
        shutil.copyfile(database, inventory.database)
        order = run(inventory)
        folder.mkdir()
        shutil.copytree(inventory.package().root, folder / "package")
    (folder / "casebound.toml").write_text(settings, encoding="utf-8")
    (folder / "order.json").write_bytes(canonical_bytes(order))


def settings_of(resolution: int, interpretation: int) -> str:
    return settings_text(
        resolution={"max_searches": len(SEARCHES)},
        more=f"[protocols]\nresolution = {resolution}\ninterpretation = {interpretation}\n",
    )


def run(inventory: Inventory) -> list[str]:
    """Resolve the report and return the files of its package in the order in which they were created."""
    order: list[str] = []

    def note(point: str) -> None:
        if point.startswith("behind cases/"):
            order.append(point.removeprefix("behind cases/").partition("/")[2])

    model = Stumbling()
    with watch(note):
        waits = inventory.resolve(model)
        inventory.clock.advance(RETRY_S)
        done = inventory.resolve(model)
    if (waits.state, done.state) != ("retry_pending", "interpreted"):
        raise SystemExit(f"{waits.state}, {waits.error}; {done.state}, {done.error}")
    return order


class Stumbling(InventoryModel):
    """A model whose first reply in each stage breaks one rule, and which is away when first asked to interpret."""

    def __init__(self) -> None:
        super().__init__(SEARCHES)

    async def send(self, request: ModelRequest) -> NativeReply:
        """Answer; the first time wrongly."""
        self.calls.append(request)
        asked = [call.stage for call in self.calls].count(request.stage)
        if request.stage == "interpretation" and asked == 1:
            raise ProviderError("LLM_UNAVAILABLE", retryable=True, found="no server")
        reply: dict[str, Any] = self.answer(request)
        if asked == (2 if request.stage == "interpretation" else 1):
            STUMBLES[request.stage](reply)
        return native_reply(reply, usage=USAGE)


STUMBLES: dict[str, Callable[[dict[str, Any]], object]] = {
    "plan": lambda reply: reply["searches"][0].update(term="Edge-Proxy"),
    "assessment": lambda reply: reply["resolutions"][0]["source_ids"].pop(0),
    "interpretation": lambda reply: reply["relevant_entities"].pop(),
}

if __name__ == "__main__":
    main()
