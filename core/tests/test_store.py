"""Files are created once, whole, below real folders only; what is loaded is exactly what was written."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.case import Admission
from casebound.contracts.model_call import ModelReply, Outcome
from casebound.errors import CaseboundError, IntegrityError, SettingsError, UnavailableError
from casebound.host import build_host
from casebound.store import Package, Workspace, disk, write
from casebound.store.disk import Place
from casebound.store.folders import Folders
from casebound.store.lock import exclusive
from casebound.store.write import Growing
from casebound.testing.faults import start_child, wait_for
from casebound.verification import verify_package
from hypothesis import given
from hypothesis import strategies as st

PATH = "analysis/interpretations/0001/plan.json"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path / "workspace")
    workspace.prepare()
    return workspace


@pytest.fixture
def package(workspace: Workspace) -> Package:
    return workspace.package("c-1")


def temporary(package: Package) -> list[str]:
    return os.listdir(package.root.parent.parent / "tmp")


# --- creating -------------------------------------------------------------------------------------------------------


def test_the_same_bytes_again_are_no_error_and_others_are_a_conflict(package: Package) -> None:
    assert package.create(PATH, b"one") == digest_of(b"one") == package.create(PATH, b"one")
    with pytest.raises(IntegrityError, match="STORE_CONFLICT"):
        package.create(PATH, b"two")
    assert package.read(PATH) == b"one"
    assert temporary(package) == []


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_what_a_private_package_creates_is_for_its_owner_alone(tmp_path: Path, umask: int) -> None:
    (tmp_path / "run" / "tmp").mkdir(parents=True)
    former = os.umask(umask)
    try:
        Package(tmp_path / "run", workspace=tmp_path / "run", private=True).create("slots/0001/native.bin", b"x")
        Package(tmp_path / "run", workspace=tmp_path / "run").create("shared/file", b"x")
    finally:
        os.umask(former)
    modes = {name: (tmp_path / "run" / name).stat().st_mode & 0o777 for name in ("slots", "slots/0001", "shared")}
    assert modes == {"slots": 0o700, "slots/0001": 0o700, "shared": 0o777 & ~umask}
    assert (tmp_path / "run/slots/0001/native.bin").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "run/shared/file").stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("content", [lambda number: b"the same" * 9999, lambda number: b"%d" % number * 9999])
def test_sixteen_processes_that_write_one_path_leave_one_whole_file(package: Package, content) -> None:
    ready, go = os.pipe()

    def write(number: int) -> int:
        os.close(go)
        os.read(ready, 1)  # returns when the parent closes its end: all begin at once
        try:
            package.create(PATH, content(number))
        except IntegrityError as exc:
            return 3 if exc.code == "STORE_CONFLICT" else 4
        return 0

    children = [start_child(lambda number=number: write(number)) for number in range(16)]
    os.close(go)
    os.close(ready)
    statuses = [wait_for(child) for child in children]
    same = content(0) == content(1)
    assert sorted(statuses) == [0] * 16 if same else [0] + [3] * 15
    assert package.read(PATH) == content(0 if same else statuses.index(0))
    assert temporary(package) == []
    assert package.paths() == [PATH]


def test_a_reader_sees_the_whole_file_or_none(package: Package) -> None:
    whole = b"x" * 3_000_000
    child = start_child(lambda: 0 if package.create(PATH, whole) else 1)
    seen = package.read(PATH)
    while seen is None:
        seen = package.read(PATH)
    assert wait_for(child) == 0
    assert seen == whole


def test_a_package_that_is_open_for_reading_takes_no_file(tmp_path: Path) -> None:
    with pytest.raises(CaseboundError, match="CONTRACT_BROKEN"):
        Package(tmp_path).create("case.json", b"{}")
    assert list(tmp_path.iterdir()) == []


# --- links ----------------------------------------------------------------------------------------------------------

COMPONENTS = (
    "workspace",
    "workspace/cases",
    "workspace/tmp",
    "workspace/cases/c-1",
    "workspace/cases/c-1/analysis",
    "workspace/cases/c-1/analysis/interpretations/0001",
    f"workspace/cases/c-1/{PATH}",
)


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("dangling", [False, True])
@pytest.mark.parametrize("ready", [False, True], ids=["fresh workspace", "workspace in use"])
def test_a_link_at_any_component_is_refused_and_nothing_is_written_behind_it(
    tmp_path: Path, component: str, dangling: bool, ready: bool
) -> None:
    outside = tmp_path / "outside"
    if component.endswith(".json"):
        outside.mkdir()
        target = outside / "file"
        if not dangling:
            target.write_bytes(b"theirs")
    else:
        target = outside
        if not dangling:
            outside.mkdir()
    workspace = Workspace(tmp_path / "workspace")
    if ready:
        workspace.prepare()
        workspace.admit(workspace.package("c-1"))
        if component.endswith("tmp") or component.endswith("c-1"):
            (tmp_path / component).rmdir()
        elif component in ("workspace", "workspace/cases"):
            (tmp_path / component).rename(tmp_path / "moved")  # after the check, before the use
    place = tmp_path / component
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)

    def write() -> None:
        if not ready:
            workspace.prepare()
        workspace.package("c-1").create(PATH, b"ours")

    with pytest.raises(SettingsError, match="WORKSPACE_LINK") as raised:
        write()
    assert str(place) in str(raised.value)
    assert [path.read_bytes() for path in outside.rglob("*")] == ([b"theirs"] if target.is_file() else [])
    assert place.is_symlink()


def test_a_file_for_a_workspace_is_told_to_be_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SettingsError) as caught:
        Workspace(tmp_path / "file").prepare()
    assert (caught.value.code, caught.value.hint) == ("WORKSPACE_LINK", "name a folder")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(SettingsError) as caught:
        Workspace(tmp_path / "link").prepare()
    assert caught.value.hint == "remove the link"


@pytest.mark.parametrize("component", [*COMPONENTS[:2], *COMPONENTS[3:]])
def test_a_link_is_not_read_through(tmp_path: Path, component: str) -> None:
    workspace = Workspace(tmp_path / "workspace")
    workspace.prepare()
    package = workspace.package("c-1")
    package.create(PATH, b"ours")
    (tmp_path / component).rename(tmp_path / "moved")
    (tmp_path / component).symlink_to(tmp_path / "moved")
    with pytest.raises(SettingsError, match="WORKSPACE_LINK"):
        package.read(PATH)


def test_a_folder_or_pipe_where_a_file_must_stand_is_refused_without_waiting(package: Package) -> None:
    package.create("case.json", b"{}")
    (package.root / "build.json").mkdir()
    os.mkfifo(package.root / "admission.json")
    for name in ("build.json", "admission.json"):
        with pytest.raises(SettingsError, match="WORKSPACE_LINK"):
            package.read(name)
        with pytest.raises(SettingsError, match="WORKSPACE_LINK"):
            package.create(name, b"{}")


# --- no room, no permission -----------------------------------------------------------------------------------------

NOT_WRITABLE = """
import sys
from pathlib import Path
from casebound.errors import CaseboundError
from casebound.store import Workspace
workspace = Workspace(Path(sys.argv[1]))
try:
    workspace.prepare()
    workspace.package("c-1").create("analysis/big.bin", b"x" * 3_000_000)
except CaseboundError as exc:
    print(exc.code, exc.exit_status, exc.path)
"""


def try_to_write(workspace: Path, user: int | None = None) -> str:
    command = [sys.executable, "-c", NOT_WRITABLE, str(workspace)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, user=user)
    return result.stdout


@pytest.mark.faults
def test_a_full_disk_is_named_and_leaves_nothing_at_the_final_name(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        assert try_to_write(tmp_path / "workspace").split()[:2] == ["WORKSPACE_WRITE", "1"]
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
        package = Workspace(tmp_path / "workspace").package("c-1")
        package.create("small.json", b"{}")  # what fits is written afterwards: nothing was lost to the failure
        assert package.paths() == ["small.json"]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.faults
def test_a_read_only_file_system_is_named(tmp_path: Path) -> None:
    Workspace(tmp_path / "workspace").prepare()
    mounted = subprocess.run(["mount", "--bind", tmp_path, tmp_path], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting needs root")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", tmp_path], check=True)
        assert try_to_write(tmp_path / "workspace").split()[:2] == ["WORKSPACE_WRITE", "1"]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_folder_without_permission_is_named(package: Package) -> None:
    package.create("case.json", b"{}")

    def write() -> int:
        if os.geteuid() == 0:
            os.setuid(65534)  # nothing is forbidden to root
        try:
            package.create(PATH, b"{}")
        except UnavailableError as exc:
            return 3 if exc.code == "WORKSPACE_WRITE" else 4
        return 0

    package.root.chmod(0o500)
    try:
        assert wait_for(start_child(write)) == 3
    finally:
        package.root.chmod(0o700)
    assert package.paths() == ["case.json"]


@pytest.fixture
def public() -> Iterator[Path]:
    """Yield a folder that every user may enter; pytest's own is private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("closed", ["", "analysis", PATH])
@pytest.mark.parametrize("call", ["read", "exists", "find", "lock", "files", "verify"])
def test_what_may_not_be_read_is_no_workspace_that_cannot_be_written(public: Path, closed, call) -> None:
    workspace = Workspace(public / "workspace")
    workspace.prepare()
    package = workspace.package("c-1")
    package.create(PATH, b"{}")
    package.create("package.json", b"{}")
    calls = {
        "read": lambda: package.read(PATH),
        "exists": lambda: package.exists(PATH),
        "find": lambda: workspace.find("c-1"),
        "lock": lambda: exclusive(package).__enter__(),
        "files": lambda: list(package.files()),
        "verify": lambda: verify_package(package.root, build_host(entry_points=[])),
    }
    hidden = {"": set(calls), "analysis": {"read", "exists", "files", "verify"}, PATH: {"read", "files", "verify"}}

    def code_of() -> int:
        if os.geteuid() == 0:
            os.setuid(65534)  # nothing is forbidden to root
        try:
            calls[call]()
        except CaseboundError as exc:
            refused = (exc.code, exc.exit_status) == ("PACKAGE_UNREADABLE", 2)
            return 3 if refused and str(package.root) in str(exc) and "Permission denied" in str(exc) else 4
        return 0

    (package.root / closed).chmod(0)
    try:
        assert wait_for(start_child(code_of)) == (3 if call in hidden[closed] else 0)
    finally:
        (package.root / closed).chmod(0o700)


# --- what killed processes leave ------------------------------------------------------------------------------------


def test_what_dead_writers_left_is_removed_and_what_living_ones_hold_stays(workspace: Workspace) -> None:
    started, finish = os.pipe(), os.pipe()

    def grow() -> None:
        steps = Growing(Folders(workspace.root), "tmp").create({"cases/c-1/a.txt": b"half"})
        next(steps)  # it grew, and has no name yet
        os.write(started[1], b"grown")
        os.close(finish[1])
        os.read(finish[0], 1)
        list(steps)

    workspace.admit(workspace.package("c-1"))
    child = start_child(grow)
    os.close(started[1])  # so that a child which fails ends the wait
    assert os.read(started[0], 99) == b"grown"
    [living] = os.listdir(workspace.tmp)
    (workspace.tmp / ("0" * 32)).write_bytes(b"half of what a killed process of an earlier release wrote")
    dead = workspace.tmp / ("1" * 32)
    dead.mkdir()
    (dead / "0").write_bytes(b"half of what a killed process wrote")
    (workspace.tmp / "note.txt").write_bytes(b"not ours")
    workspace.prepare()
    assert sorted(os.listdir(workspace.tmp)) == sorted([living, "note.txt"])
    os.close(finish[1])
    assert wait_for(child) == 0
    assert (workspace.cases / "c-1" / "a.txt").read_bytes() == b"half"
    workspace.prepare()
    assert os.listdir(workspace.tmp) == ["note.txt"]
    for descriptor in (started[0], finish[0]):
        os.close(descriptor)


def test_one_process_at_a_time_holds_a_package(workspace: Workspace) -> None:
    package = workspace.package("c-1")
    workspace.admit(package)

    def attempt() -> int:
        try:
            with exclusive(package):
                return 0
        except UnavailableError as exc:
            return 3 if exc.code == "CASE_BUSY" else 4

    with exclusive(package):
        assert wait_for(start_child(attempt)) == 3
    assert wait_for(start_child(attempt)) == 0


# --- flushing -------------------------------------------------------------------------------------------------------


def test_what_was_being_flushed_when_somebody_interrupted_is_kept(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, begun, may_end = workspace.package("c-1"), threading.Event(), threading.Event()
    workspace.admit(package)
    real = disk._flush_devices

    def slow(by_device: dict[int, list[Place]]) -> None:
        begun.set()
        assert may_end.wait(60)
        real(by_device)

    async def work() -> None:
        with exclusive(package):
            package.create(PATH, b"paid for")
            await package.flush()

    async def interrupted() -> None:
        task = asyncio.ensure_future(work())
        assert await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    monkeypatch.setattr(disk, "_flush_devices", slow)
    asyncio.run(interrupted())
    assert (package.root / PATH).read_bytes() == b"paid for"
    assert temporary(package) == []


@pytest.mark.parametrize("ended_by", [KeyboardInterrupt(), SettingsError("CASE_ID", found="x")])
def test_what_ended_the_work_is_told_though_the_last_flush_fails_too(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, ended_by: BaseException
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    package = workspace.package("c-1")
    workspace.admit(package)
    monkeypatch.setattr(write, "_fill", full)

    def work() -> None:
        with exclusive(package):
            package.create(PATH, b"lost")
            raise ended_by

    with pytest.raises(type(ended_by)) as caught:
        work()
    assert "WORKSPACE_WRITE" in caught.value.__notes__[0]


def test_what_could_not_be_written_is_not_tried_again_at_the_end(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = workspace.package("c-1")
    workspace.admit(package)
    fill = write._fill

    def full_once(*where: Any) -> None:
        monkeypatch.setattr(write, "_fill", fill)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(write, "_fill", full_once)
    with exclusive(package):
        package.create(PATH, b"a request that must not be sent")
        with pytest.raises(UnavailableError, match="WORKSPACE_WRITE"):
            asyncio.run(package.flush())
    assert not (package.root / PATH).exists()


# --- names that are looked for once ---------------------------------------------------------------------------------

FOLDERS = st.lists(st.sampled_from(["a", "b"]), max_size=3).map("/".join)
FILES = st.tuples(FOLDERS, st.sampled_from(["f", "g"])).map(lambda parts: "/".join(filter(None, parts)))


@given(before=st.lists(FILES), asked=st.lists(FILES), during=st.lists(FILES), empty=FOLDERS)
def test_who_holds_a_package_finds_in_it_what_everybody_finds(before, asked, during, empty) -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        workspace.prepare()
        package, other = workspace.package("c-1"), workspace.package("c-1")
        (package.root / empty / "empty").mkdir(parents=True)
        for path in before:
            other.create(path, path.encode())
        with exclusive(package):
            assert [package.exists(path) for path in asked] == [path in before for path in asked]
            for path in during:
                package.create(path, path.encode())
            found = package.paths()
            package.flush_now()
            assert found == package.paths() == other.paths() == sorted({*before, *during})
            for path in (*before, *asked, *during, "a/b/a/b/f"):
                assert package.exists(path) == other.exists(path)
                assert package.read(path) == other.read(path)
                assert package.names(path.rpartition("/")[0]) == other.names(path.rpartition("/")[0])


def test_who_holds_a_package_looks_for_a_name_once_and_again_where_it_is_told_to(package: Package) -> None:
    package.create("a/f", b"")
    with exclusive(package):
        assert not package.exists("a/g")
        (package.root / "a" / "g").write_bytes(b"of a phase")
        assert not package.exists("a/g")
        package.look_again()
        assert package.exists("a/g")
    (package.root / "a" / "g").unlink()
    assert not package.exists("a/g")


def test_a_small_artifact_is_loaded_once_while_the_package_is_kept_open(package: Package) -> None:
    reply = ModelReply(text="x", finish_reason="stop")
    with package.keep_open():
        package.create_artifact("reply.json", reply, again=True)
        package.flush_now()
        assert package.load("reply.json", ModelReply) is reply
        with pytest.raises(IntegrityError, match="STORE_"):
            package.load("reply.json", Outcome)
        package.look_again()
        assert package.load("reply.json", ModelReply) is not reply
    with package.keep_open():
        read = package.load("reply.json", ModelReply)
        assert read == reply
        assert read is not reply
        assert package.load("reply.json", ModelReply) is read
        (package.root / "reply.json").write_bytes(b"damaged")
    with pytest.raises(IntegrityError, match="STORE_JSON"):
        package.load("reply.json", ModelReply)


def test_a_large_artifact_does_not_stay_in_memory(package: Package) -> None:
    reply = ModelReply(text="x" * 5000, finish_reason="stop")
    with package.keep_open():
        package.create_artifact("reply.json", reply, again=True)
        package.flush_now()
        assert package.load("reply.json", ModelReply) is not reply


def test_what_is_created_over_a_small_artifact_is_loaded_until_the_flush_refuses_it(package: Package) -> None:
    small, large = (ModelReply(text="x" * length, finish_reason="stop") for length in (1, 5000))
    with package.keep_open():
        package.create_artifact("reply.json", small, again=True)
        package.flush_now()
        package.create_artifact("reply.json", large, again=True)
        assert package.load("reply.json", ModelReply) == large
        with pytest.raises(IntegrityError, match="STORE_CONFLICT"):
            package.flush_now()
        assert package.load("reply.json", ModelReply) == small


def test_an_artifact_that_could_not_be_written_is_not_loaded(package: Package) -> None:
    package.create("a/f", b"")
    with package.keep_open():
        package.create_artifact("a/reply.json", ModelReply(text="ours", finish_reason="stop"), again=True)
        (package.root / "a" / "reply.json").write_bytes(b"of somebody else")
        with pytest.raises(IntegrityError, match="STORE_CONFLICT"):
            package.flush_now()
        with pytest.raises(IntegrityError, match="STORE_JSON"):
            package.load("a/reply.json", ModelReply)


def test_what_is_ahead_is_found_whenever_it_was_created(package: Package) -> None:
    package.create("a/e", b"")
    with package.keep_open():
        package.create("a/f", b"")
        with package.alone():
            package.create("a/g", b"")
            package.look_again()
            assert package.paths() == ["a/e", "a/f", "a/g"]
            assert package.names("a") == ["e", "f", "g"]


def test_nothing_is_created_in_a_folder_that_cannot_be_listed(package: Package, monkeypatch) -> None:
    def broken(folder: int) -> None:
        raise OSError(errno.EIO, "broken")

    package.create("a/f", b"")
    with exclusive(package):
        monkeypatch.setattr(os, "scandir", broken)
        with pytest.raises(UnavailableError, match="WORKSPACE_WRITE"):
            package.create("a/g", b"")
        monkeypatch.undo()
    assert package.names("a") == ["f"]


def test_names_that_could_not_be_written_are_not_there(package: Package) -> None:
    package.create("a/f", b"")
    with exclusive(package):
        assert not package.exists("a/g")
        (package.root / "a" / "g").write_bytes(b"of somebody else")
        package.create("a/g", b"ours")
        package.create("a/h", b"ours")
        with pytest.raises(IntegrityError, match="STORE_CONFLICT"):
            package.flush_now()
        assert package.names("a") == ["f", "g"]
        assert package.read("a/g") == b"of somebody else"


# --- loading --------------------------------------------------------------------------------------------------------

ADMISSION = Admission(
    case_id="c-1", package_id="c-1", reader="text", file="a.txt", size=3, digest=digest_of(b"abc")
).to_bytes()
BROKEN = {
    "a key that stands twice": (
        ADMISSION.replace(b'"case_id"', b'"case_id":"c-1","case_id"', 1),
        "STORE_JSON",
        "/case_id",
    ),
    "a space": (ADMISSION.replace(b":3}", b": 3}"), "STORE_JSON", None),
    "another order of keys": (
        b'{"size":3,' + ADMISSION[1:].replace(b',"size":3', b""),
        "STORE_JSON",
        None,
    ),
    "a line end": (ADMISSION + b"\n", "STORE_JSON", None),
    "a byte order mark": (b"\xef\xbb\xbf" + ADMISSION, "STORE_JSON", None),
    "an escape that is not needed": (ADMISSION.replace(b"a.txt", b"\\u0061.txt"), "STORE_JSON", None),
    "not UTF-8": (ADMISSION.replace(b"a.txt", b"\xff.txt"), "STORE_JSON", None),
    "NaN": (ADMISSION.replace(b":3}", b":NaN}"), "STORE_JSON", None),
    "a float": (ADMISSION.replace(b":3}", b":3.0}"), "STORE_JSON", "/size"),
    "a huge number": (ADMISSION.replace(b":3}", b":90071992547409930}"), "STORE_JSON", "/size"),
    "text for a number": (ADMISSION.replace(b":3}", b':"3"}'), "STORE_JSON", "/size"),
    "true for a number": (ADMISSION.replace(b":3}", b":true}"), "STORE_JSON", "/size"),
    "a number for text": (ADMISSION.replace(b'"a.txt"', b"1"), "STORE_JSON", "/file"),
    "no digest": (ADMISSION.replace(b"sha256:", b"sha512:"), "STORE_JSON", "/digest"),
    "an unknown key": (ADMISSION[:-1] + b',"z":1}', "STORE_JSON", "/z"),
    "a missing key": (ADMISSION.replace(b',"size":3', b""), "STORE_JSON", "/size"),
    "a list": (b"[]", "STORE_JSON", None),
    "nothing": (b"", "STORE_JSON", None),
    "zeros": (bytes(99), "STORE_JSON", None),
    "half": (ADMISSION[:50], "STORE_JSON", None),
    "without end": (b"[" * 99999, "STORE_JSON", None),
    "a later format": (ADMISSION.replace(b"admission/v1", b"admission/v2"), "STORE_VERSION", "/format"),
    "a later format with more": (
        ADMISSION.replace(b"admission/v1", b"admission/v2")[:-1] + b',"z":1}',
        "STORE_VERSION",
        "/format",
    ),
    "a file of another kind": (ADMISSION.replace(b"admission/v1", b"plan/v1"), "STORE_JSON", "/format"),
    "no format": (ADMISSION.replace(b'"format":"casebound-admission/v1",', b""), "STORE_JSON", "/format"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_was_not_written_by_us_is_refused_with_the_place(package: Package, name: str) -> None:
    data, code, pointer = BROKEN[name]
    assert data != ADMISSION
    package.create("admission.json", data)
    with pytest.raises(IntegrityError) as raised:
        package.load("admission.json", Admission)
    assert (raised.value.code, raised.value.path) == (code, "admission.json")
    if pointer is not None:
        assert raised.value.pointer == pointer


def test_a_key_that_may_be_left_out_in_a_call_may_not_be_left_out_on_disk(package: Package) -> None:
    package.create(
        "reply.json", ModelReply(text="", finish_reason="stop").to_bytes().replace(b'"request_id":null,', b"")
    )
    with pytest.raises(IntegrityError, match="STORE_JSON") as raised:
        package.load("reply.json", ModelReply)
    assert raised.value.pointer == "/request_id"


@given(text=st.text(), tools=st.lists(st.text(), max_size=3), number=st.integers(0, 2**53 - 1))
def test_what_was_written_is_loaded_again(text: str, tools: list[str], number: int) -> None:
    reply = ModelReply.from_json(
        {"text": text, "finish_reason": "stop", "tools": tools, "usage": {"input_tokens": number}}
    )
    data = reply.to_bytes()
    assert data == canonical_bytes(reply.to_json())
    again = ModelReply.from_bytes(data)
    assert again == reply
    assert again is not None
    assert again.to_bytes() == data


def test_a_changed_copy_has_bytes_of_its_own() -> None:
    reply = ModelReply(text="one", finish_reason="stop")
    assert b"one" in reply.to_bytes()
    assert b"two" in reply.model_copy(update={"text": "two"}).to_bytes()


# --- finding a case ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "asked", "near", "found"),
    [
        (3, "router-9", ["router-000", "router-001", "router-002"], "'router-9'"),
        (300, "router-07", ["router-207", "router-079"], "'router-07', and 295 packages with other ids"),
        (300, "zzz", [], "'zzz', and 300 packages with other ids"),
    ],
)
def test_an_unknown_case_is_told_with_the_ids_that_are_like_it(
    workspace: Workspace, number: int, asked: str, near: list[str], found: str
) -> None:
    for name in range(number):
        workspace.admit(workspace.package(f"router-{name:03}"))
    with pytest.raises(SettingsError, match="CASE_UNKNOWN") as caught:
        workspace.find(asked)
    assert set(near) <= set(caught.value.allowed)
    assert caught.value.found == found
