"""Packages of earlier releases and versions: today's code verifies them, and ends them in the same bytes.

They are written once, by `scripts/freeze_packages.py`, and never again.
"""

from __future__ import annotations

import json
import runpy
import shutil
from functools import cache
from pathlib import Path

import pytest
from casebound.canonical import digest_of
from casebound.contracts.model_call import ModelRequest, NativeReply
from casebound.errors import ProviderError
from casebound.store import Package
from casebound.testing.inventory import Inventory
from casebound.testing.scripted import FixedClock, ScriptedProvider
from casebound.verification import verify_package

ROOT = Path(__file__).parents[1] / "golden" / "packages"
SCRIPT = runpy.run_path(str(ROOT.parents[2] / "scripts" / "freeze_packages.py"))
GOLDEN = sorted(path.parent for path in ROOT.glob("*/*/order.json"))
INPUT = "analysis/interpretations/0001/input.json"
RETRY_S: int = SCRIPT["RETRY_S"]


def names(folders: list[Path]) -> list[str]:
    return [folder.relative_to(ROOT).as_posix() for folder in folders]


every_package = pytest.mark.parametrize("golden", GOLDEN, ids=names(GOLDEN))


@cache
def files_of(golden: Path) -> dict[str, bytes]:
    return {path: data for path, data in Package(golden / "package").files() if data is not None}


def order_of(golden: Path) -> list[str]:
    return json.loads((golden / "order.json").read_bytes())


def cuts_of(golden: Path) -> list[int]:
    """Return after how many files a run may be cut off: from the frozen inputs on, up to the seal."""
    order = order_of(golden)
    return list(range(order.index(INPUT) + 1, len(order)))


def unpack(golden: Path, folder: Path, files: int) -> Inventory:
    """Lay out the project of a golden package, with the first `files` files of the package in its workspace."""
    for source in (golden.parent / "inventory.db", golden.parent / "report.md", golden / "casebound.toml"):
        folder.mkdir(exist_ok=True)
        shutil.copyfile(source, folder / source.name)
    inventory = Inventory(folder, FixedClock())
    package = Package(inventory.workspace / "cases" / "INC-7")
    for path in order_of(golden)[:files]:
        (package.root / path).parent.mkdir(parents=True, exist_ok=True)
        (package.root / path).write_bytes(files_of(golden)[path])
        if "/events/" in path:
            inventory.clock.advance(RETRY_S)
    return inventory


class Recorded(ScriptedProvider):
    """Gives each attempt what it got when the package was written, and nothing to a request that is another one."""

    def __init__(self, golden: Path) -> None:
        super().__init__({})
        self._files = files_of(golden)

    async def send(self, request: ModelRequest) -> NativeReply:
        self.calls.append(request)
        folder = f"attempts/{request.stage}-{request.attempt:04d}/"
        (kept,) = [path for path in self._files if path.endswith(folder + "request.json")]
        assert self._files[kept] == request.to_bytes(), f"another request than the one of {kept}"
        body = self._files.get(kept.replace("request.json", "native.bin"))
        if body is None:
            outcome = json.loads(self._files[kept.replace("request.json", "outcome.json")])
            raise ProviderError(outcome["code"], retryable=True, found="no server")
        return NativeReply(200, body)


def finish(inventory: Inventory, golden: Path) -> dict[str, bytes]:
    """Go on with a case until it is interpreted, and return its files."""
    provider = Recorded(golden)
    result = inventory.resolve(provider)
    if result.state == "retry_pending":
        inventory.clock.advance(RETRY_S)
        result = inventory.resolve(provider)
    assert result.state == "interpreted", result.error
    return {path: data for path, data in inventory.package().files() if data is not None}


def test_every_pair_of_the_design_has_a_package() -> None:
    pairs = {"{}-{}".format(*pair) for pair in SCRIPT["PAIRS"]}
    assert {golden.name for golden in GOLDEN} == pairs


def test_nothing_is_frozen_twice(capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: digest_of(path.read_bytes()) for path in ROOT.rglob("*") if path.is_file()}
    SCRIPT["main"]()
    assert capsys.readouterr().out == ""
    assert {path: digest_of(path.read_bytes()) for path in ROOT.rglob("*") if path.is_file()} == before


@pytest.mark.spec("A-107", "A-109", "A-128", "A-133", "A-144c", "A-150b", "A-155", "A-157b", "X-2", "A-147d")
@every_package
def test_an_old_package_holds(golden: Path, tmp_path: Path) -> None:
    inventory = unpack(golden, tmp_path / "project", len(order_of(golden)))
    (inventory.folder / "inventory.db").unlink()
    before = dict(inventory.package().files())
    verification = verify_package(inventory.package().root, inventory.host())
    assert verification.findings == ()
    assert verification.answer == "holds"
    assert dict(inventory.package().files()) == before


@pytest.mark.spec("A-144a", "A-149")
@every_package
def test_a_package_pins_the_versions_that_it_is_named_for(golden: Path) -> None:
    frozen = json.loads(files_of(golden)["analysis/interpretations/0001/entity-resolution/input.json"])
    versions = (frozen["protocol_version"], frozen["interpretation_protocol_version"])
    assert "{}-{}".format(*versions) == golden.name
    assert [protocol["prompt_id"] for protocol in frozen["protocols"]] == [
        f"entity_resolution_plan_v{versions[0]}",
        f"entity_resolution_assessment_v{versions[0]}",
        f"case_interpretation_resolved_v{versions[1]}",
    ]


@pytest.mark.spec("A-107", "A-133", "A-144c", "A-150b", "A-155", "A-157b", "A-158j", "X-2")
@every_package
def test_an_old_package_is_resumed_half_way_and_ends_in_the_same_bytes(golden: Path, tmp_path: Path) -> None:
    order = order_of(golden)
    for number, path in enumerate(("plan.json", "candidates.json", "assessment.json", "context.json")):
        kept = next(place for place, name in enumerate(order) if name.endswith(path)) + 1
        inventory = unpack(golden, tmp_path / str(number), kept)
        assert finish(inventory, golden) == files_of(golden), path


@pytest.mark.faults
@every_package
def test_an_old_package_is_resumed_from_any_point(golden: Path, tmp_path: Path) -> None:
    order = order_of(golden)
    for files in cuts_of(golden):
        if not is_between_sending_and_keeping(order, files):
            inventory = unpack(golden, tmp_path / str(files), files)
            assert finish(inventory, golden) == files_of(golden), f"after {order[files - 1]}"


def is_between_sending_and_keeping(order: list[str], files: int) -> bool:
    """Tell whether a call is under way: its reply counts as lost, and is asked for again (`test_kill_points`)."""
    last = order[files - 1]
    return last.endswith(("request.json", "native.json")) and "/attempts/" in last


@every_package
def test_the_case_is_answered_again_without_a_call_and_without_a_change(golden: Path, tmp_path: Path) -> None:
    inventory = unpack(golden, tmp_path / "project", len(order_of(golden)))
    provider = ScriptedProvider({})
    assert inventory.resolve(provider).state == "interpreted"
    assert provider.calls == []
    assert {path: data for path, data in inventory.package().files() if data is not None} == files_of(golden)
