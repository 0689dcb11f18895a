"""Whatever is changed in a finished package, `verify` finds and names it; what is unfinished is told apart."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from casebound.canonical import canonical_bytes, digest_of
from casebound.errors import SettingsError
from casebound.host import Host
from casebound.pointer import resolve_pointer
from casebound.store import Package
from casebound.store.layout import Revision, is_sealed
from casebound.testing.distributions import plugins_in, write_distribution
from casebound.testing.inventory import write_inventory
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.troubled import CASE, REPORT, SEARCHES, TroubledCase
from casebound.verification import Verification, verify_package

pytestmark = pytest.mark.faults

SEAL = Revision().seal


class Finished:
    """A finished package, put back after each change."""

    def __init__(self, case: TroubledCase, elsewhere: Path) -> None:
        self.host: Host = case.inventory.host()
        self.root = elsewhere / "copy"
        shutil.copytree(case.root, self.root)
        self.outside = elsewhere / "outside"
        self.files = case.files()

    def verify(self) -> Verification:
        return verify_package(self.root, self.host)

    def restore(self) -> None:
        shutil.rmtree(self.root)
        for path, data in self.files.items():
            self.write(path, data)

    def write(self, path: str, data: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).unlink(missing_ok=True)
        (self.root / path).write_bytes(data)

    def reseal(self) -> None:
        """Make the seal again over what is there now, as a forger would."""
        files = {path: data for path, data in Package(self.root).files() if data is not None}
        listed = [
            {"path": path, "size": len(data), "digest": digest_of(data)}
            for path, data in sorted(files.items())
            if is_sealed(path, Revision())
        ]
        self.write(SEAL, canonical_bytes({"format": "casebound-seal/v1", "files": listed}))


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> TroubledCase:
    case = TroubledCase.write(tmp_path_factory.mktemp("case"))
    case.advance()
    return case


@pytest.fixture(scope="module")
def copied(case: TroubledCase, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return Finished(case, tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture
def finished(copied: Finished) -> Iterator[Finished]:
    yield copied
    copied.restore()


def named(verification: Verification) -> set[str]:
    """Return the files that the findings are about; the seal too where one quotes it, for it may be what is wrong."""
    quoted = {SEAL for finding in verification.findings if f"what {SEAL} says at /files/" in finding.message}
    return {finding.file for finding in verification.findings} | quoted


def test_the_package_has_everything_that_is_to_be_broken(finished: Finished) -> None:
    assert finished.verify().answer == "holds"
    names = " ".join(finished.files)
    for part in (
        "feedback-plan-0002.json",
        "feedback-interpretation-0002.json",
        "attempts/assessment-0002/",
        "research/captures/",
        "entity-resolution/captures/",
        "events/0002.json",
    ):
        assert part in names
    assessment = json.loads(finished.files[Revision().assessment])
    assert [entry["status"] for entry in assessment["reply"]["resolutions"]] == ["selected", "ambiguous", "selected"]


# --- every file in turn ---------------------------------------------------------------------------------------------

DAMAGES = {
    "the first byte flipped": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "a byte in the middle flipped": lambda data: (
        data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]
    ),
    "the last byte flipped": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "cut": lambda data: data[: len(data) // 2],
    "emptied": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "a line end added": lambda data: data + b"\n",
}


@pytest.mark.spec("A-107")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_found_and_named(finished: Finished, damage: str) -> None:
    for path, data in finished.files.items():
        finished.write(path, DAMAGES[damage](data))
        verification = finished.verify()
        finished.write(path, data)
        assert verification.answer == "does_not_hold", path
        assert path in named(verification), path


def test_a_missing_file_is_found_and_named(finished: Finished) -> None:
    for path, data in finished.files.items():
        (finished.root / path).unlink()
        if path == "package.json":
            assert finished.verify().answer == "does_not_hold"
        verification = finished.verify()
        finished.write(path, data)
        if path == SEAL:
            assert verification.answer == "unfinished"  # exactly what a kill before the seal leaves
        else:
            assert path in named(verification), path


def test_a_link_in_place_of_a_file_is_found_and_named(finished: Finished) -> None:
    for path, data in finished.files.items():
        finished.outside.write_bytes(data)  # the very same bytes
        (finished.root / path).unlink()
        (finished.root / path).symlink_to(finished.outside)
        verification = finished.verify()
        finished.write(path, data)
        assert path in named(verification), path
        assert "WORKSPACE_LINK" in {finding.code for finding in verification.findings if finding.file == path}


def test_a_link_in_place_of_a_folder_is_found(finished: Finished) -> None:
    for folder in ("source", "research/captures", "analysis", Revision().resolution, f"{Revision().folder}/attempts"):
        moved = finished.outside.with_name("moved")
        (finished.root / folder).rename(moved)
        (finished.root / folder).symlink_to(moved)
        verification = finished.verify()
        (finished.root / folder).unlink()
        moved.rename(finished.root / folder)
        assert folder in named(verification), folder


def test_another_valid_file_of_the_same_kind_is_found_and_named(finished: Finished, tmp_path: Path) -> None:
    other = TroubledCase.write(tmp_path)
    other.inventory.report.write_text(REPORT.replace("was silent", "fell silent").replace("two seconds", "one second"))
    other.advance()
    foreign = other.files()
    replaced = 0
    for path, data in finished.files.items():
        same_kind = [found for found in (foreign.get(path), *siblings(finished, path)) if found not in (None, data)]
        for found in same_kind[:3]:
            finished.write(path, found)
            verification = finished.verify()
            finished.write(path, data)
            assert path in named(verification), path
            replaced += 1
    assert replaced > 60


def siblings(finished: Finished, path: str) -> list[bytes]:
    folder, _, name = path.rpartition("/")
    parent = folder.rpartition("/")[0] if "/attempts/" in path else folder
    wanted = name if "/attempts/" in path else name[:8]
    return [
        data
        for other, data in finished.files.items()
        if other != path and other.startswith(parent) and other.rpartition("/")[2].startswith(wanted) and parent
    ]


def test_exchanged_captures_are_found(finished: Finished) -> None:
    for folder in ("research/captures", Revision().captures):
        one, other = [path for path in finished.files if path.startswith(folder)][:2]
        finished.write(one, finished.files[other])
        finished.write(other, finished.files[one])
        finished.reseal()
        assert {one, other} & named(finished.verify())
        finished.restore()


EXTRA = (
    "note.txt",
    "case.json.bak",
    "research/captures/note.json",
    "research/captures/sha256-" + "0" * 64 + ".json",
    f"{Revision().folder}/feedback-interpretation-0003.json",
    f"{Revision().resolution}/feedback-plan-0001.json",
    f"{Revision().resolution}/attempts/plan-0009/request.json",
    f"{Revision().resolution}/attempts/plan-0009/native.bin",
    f"{Revision().resolution}/attempts/interpretation-0001/request.json",
    f"{Revision().folder}/attempts/plan-0001/request.json",
    f"{Revision().folder}/events/0007.json",
    f"{Revision(3).folder}/input.json",
    "analysis/interpretations/note.txt",
)


@pytest.mark.parametrize("resealed", [False, True])
def test_an_extra_file_is_found_and_named_even_under_a_new_seal(finished: Finished, resealed: bool) -> None:
    for extra in EXTRA:
        pattern = extra.rpartition("/")[2].rpartition("-")[0] or extra.rpartition("/")[2]
        like = next((data for path, data in finished.files.items() if pattern in path), b"{}")
        finished.write(extra, like)
        if resealed:
            finished.reseal()
        verification = finished.verify()
        finished.restore()
        assert verification.answer == "does_not_hold", extra
        assert any(
            extra.startswith(file) or file.startswith(extra.rpartition("/")[0]) for file in named(verification)
        ), extra


def test_an_extra_folder_is_found_and_what_a_phase_wrote_is_not_ours(finished: Finished) -> None:
    (finished.root / "copies").mkdir()
    assert named(finished.verify()) == {"copies/"}
    (finished.root / "copies").rmdir()
    finished.write("analysis/hypothesis/0001.json", b"whatever")
    assert finished.verify().answer == "holds"


def test_converted_line_ends_are_found_with_advice(finished: Finished) -> None:
    summary = Revision().summary
    finished.write(summary, finished.files[summary].replace(b"\n", b"\r\n"))
    messages = [finding.message for finding in finished.verify().findings if finding.file == summary]
    assert any("line ends were converted" in message for message in messages)


# --- a forger who makes the seal again ------------------------------------------------------------------------------

# What nothing else in the package says: by whom and when it was made, what the network said around a reply, and how
# long to wait. `verify` proves that a package agrees with itself, not who wrote it.
UNDERIVABLE = {
    "package.json": ("/casebound", "/distributions"),
    "admission.json": ("/file", "/reader"),
    "native.json": ("/status", "/headers", "/duration_ms"),
    "outcome.json": ("/at", "/message", "/retryable", "/retry_after_ms", "/code"),
    "events": ("/",),
}
NAMED = (
    "case.json",
    "facts.json",
    "request.json",
    "plan.json",
    "candidates.json",
    "assessment.json",
    "context.json",
    "interpretation.json",
    "summary.md",
    "hypothesis-context.json",
    "feedback",
)


def may_pass(path: str, pointer: str, value: Any) -> bool:
    known = next((places for part, places in UNDERIVABLE.items() if part in path), ())
    return any(pointer.startswith(place) for place in known)


def places(value: Any, pointer: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, f"{pointer}/{index}")
    else:
        yield pointer


def changed(document: Any, pointer: str) -> Any:
    document = json.loads(json.dumps(document))
    holder, _, key = pointer.rpartition("/")
    parent = resolve_pointer(document, holder) if holder else document
    place = int(key) if isinstance(parent, list) else key.replace("~1", "/").replace("~0", "~")
    value = parent[place]
    parent[place] = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else f"{value or ''}x"
    return document


def test_a_change_under_a_new_seal_is_found_wherever_something_follows(finished: Finished) -> None:
    passed, tried = [], 0
    for path, data in finished.files.items():
        if not path.endswith(".json") or path == SEAL:
            continue
        document = json.loads(data)
        every = list(places(document))
        for pointer in every[:: max(1, len(every) // 12)]:
            finished.write(path, canonical_bytes(changed(document, pointer)))
            finished.reseal()
            verification = finished.verify()
            tried += 1
            if verification.answer != "does_not_hold":
                passed.append((path, pointer))
            elif any(part in path for part in NAMED):
                assert path in named(verification), (path, pointer)
                assert_pointed_at(verification, path, pointer)
        finished.write(path, data)
    assert tried > 250
    assert [place for place in passed if not may_pass(*place, None)] == []


def assert_pointed_at(verification: Verification, path: str, pointer: str) -> None:
    pointers = [finding.pointer for finding in verification.findings if finding.file == path]
    assert any(pointer.startswith(found) for found in pointers), (path, pointer, pointers)


def test_a_summary_changed_under_a_new_seal_is_found(finished: Finished) -> None:
    for path in (Revision().summary, "source/report.md", f"{Revision().resolution}/attempts/plan-0001/native.bin"):
        data = finished.files[path]
        finished.write(path, data + b" ")
        finished.reseal()
        assert any(
            path in finding.file or path.rpartition("/")[0] in finding.file for finding in finished.verify().findings
        )
        finished.write(path, data)


def test_a_file_left_out_under_a_new_seal_is_found(finished: Finished) -> None:
    for path, data in finished.files.items():
        if path == SEAL:
            continue
        (finished.root / path).unlink()
        finished.reseal()
        verification = finished.verify()
        finished.write(path, data)
        last_event = path.endswith(f"events/{max(p[-9:-5] for p in finished.files if '/events/' in p)}.json")
        assert verification.answer == "does_not_hold" or last_event, path


def test_an_outcome_of_another_kind_is_found(finished: Finished) -> None:
    for path, data in finished.files.items():
        if not path.endswith("/outcome.json"):
            continue
        for kind in ("accepted", "invalid", "provider_error", "unknown"):
            outcome = json.loads(data)
            if kind == outcome["kind"] or {kind, outcome["kind"]} == {"provider_error", "unknown"}:
                continue
            finished.write(path, canonical_bytes({**outcome, "kind": kind}))
            finished.reseal()
            assert path in named(finished.verify()), (path, kind)
        finished.write(path, data)


# --- unfinished -----------------------------------------------------------------------------------------------------


def test_a_run_that_ended_anywhere_is_unfinished_and_what_is_there_holds(tmp_path: Path) -> None:
    case = TroubledCase.write(tmp_path)
    host = case.inventory.host()
    answers = []

    def look(name: str) -> None:
        if (case.root / "package.json").exists():
            verification = verify_package(case.root, host)
            assert verification.findings == (), (name, verification.findings)
            answers.append(verification.answer)

    case.advance(look)
    assert answers[-1] == "holds"
    assert set(answers[:-1]) == {"unfinished"}
    assert len(answers) > 100


def test_without_a_package_there_is_nothing_to_verify(tmp_path: Path, case: TroubledCase) -> None:
    with pytest.raises(SettingsError, match="PACKAGE_UNREADABLE"):
        verify_package(tmp_path, case.inventory.host())


# --- elsewhere ------------------------------------------------------------------------------------------------------

OFFLINE = """
import sys
from pathlib import Path
FORBIDDEN = ("socket", "sqlite3.connect", "subprocess", "os.system", "os.exec", "os.posix_spawn", "urllib")
MODULES = ("sqlalchemy", "sqlite3", "httpx", "aiohttp", "openai", "casebound.pipeline", "casebound.llm.provider_")
from casebound.testing.inventory import Inventory
from casebound.testing.scripted import FixedClock
host = Inventory(Path("."), FixedClock()).host()
for name in [name for name in sys.modules if name.startswith(MODULES)]:
    del sys.modules[name]
def watch(event, arguments):
    if event.startswith(FORBIDDEN) or (event == "import" and arguments[0].startswith(MODULES)):
        raise RuntimeError(f"{event} {arguments}")
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        raise RuntimeError(f"{event} {arguments}")
sys.addaudithook(watch)
from casebound.verification import verify_package
print(verify_package(Path(sys.argv[1]), host).answer)
"""


@pytest.mark.spec("A-107", "A-113m", "X-5")
def test_it_holds_elsewhere_without_database_provider_or_network(case: TroubledCase, tmp_path: Path) -> None:
    there = tmp_path / "another" / "name"
    shutil.copytree(case.root, there)
    before = case.files()
    database = case.inventory.database.read_bytes()
    case.inventory.database.unlink()
    try:
        command = [sys.executable, "-c", OFFLINE, str(there)]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (result.stdout, result.returncode) == ("holds\n", 0), result.stderr
    finally:
        case.inventory.database.write_bytes(database)
    assert {path: data for path, data in Package(there).files()} == before  # looking changes nothing
    data = (there / "case.json").read_bytes()
    (there / "case.json").write_bytes(data.replace(b"silent", b"silenT", 1))
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.stdout == "does_not_hold\n"


VALIDATOR = """
from casebound.hookspecs import hookimpl
from casebound.specs import Validator
def check(value, context):
    return []
@hookimpl
def casebound_validators():
    return [Validator("plan", "SITE_RULE", 1, check=check, always=True)]
"""


def test_a_rule_that_is_not_installed_is_named_with_its_distribution(tmp_path: Path, monkeypatch) -> None:
    write_distribution(tmp_path / "plugins", "casebound-site", VALIDATOR, version="2.5")
    monkeypatch.syspath_prepend(str(tmp_path / "plugins"))
    inventory = write_inventory(tmp_path / "project", report=REPORT)
    plugins = plugins_in(tmp_path / "plugins")
    project = inventory.project(InventoryModel(SEARCHES), plugins=plugins)
    assert [result.state for result in project.resolve([inventory.report])] == ["interpreted"]
    root = inventory.package(CASE).root
    assert verify_package(root, inventory.host(plugins=plugins)).answer == "holds"
    verification = verify_package(root, inventory.host())
    assert verification.answer == "does_not_hold"
    (finding,) = verification.findings
    assert (finding.code, finding.file, finding.pointer) == ("PLUGIN_MISSING", Revision().input, "/stages/0")
    assert "SITE_RULE/1" in finding.message
    assert "casebound-site 2.5" in finding.message
