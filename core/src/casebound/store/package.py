"""One package: read by path, create by path. What is on disk is the state, and what is on its way there.

While a package is kept open, what was created stays in memory until the next flush, and is read from there (ADR 15).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.base import Artifact
from casebound.errors import CaseboundError, ContractError, IntegrityError, SettingsError
from casebound.pointer import first_difference, json_pointer
from casebound.store.disk import Place, flush, flush_together
from casebound.store.folders import Folders, open_below
from casebound.store.names import Names
from casebound.store.write import Growing, other_content, read_at, unreadable, unwritable
from casebound.strict_json import JsonError, parse_json

A = TypeVar("A", bound=Artifact)
TMP = "tmp"
MOST_REMEMBERED = 2048  # bytes of an artifact that stays in memory while its package is kept open
MOST_FOLDERS = 64  # that nest in a package; each one keeps a descriptor open while it is walked


class Package:
    """A package folder.

    Args:
        root: the folder; it need not exist before the first `create`.
        workspace: the workspace that it lies in, below which no link is followed; None: reading only.
        private: what is created is for its owner alone.
    """

    def __init__(self, root: Path, *, workspace: Path | None = None, private: bool = False) -> None:
        self.root = root
        self._workspace = workspace
        self._folders = Folders(root if workspace is None else workspace, private=private)
        self._way = root.relative_to(self._folders.root).parts
        self._growing = Growing(self._folders, TMP)
        self._created: dict[str, tuple[int, str]] = {}
        self._ahead: dict[str, bytes] = {}  # by path: what was created, and is not on the disk yet
        self._names: Names | None = None  # while nobody else adds any
        self._small: dict[str, Artifact] = {}  # by path: what was created or read while it is kept open

    def open(self, path: str = "", *, create: bool = False) -> AbstractContextManager[int]:
        """Open the folder at `path`, by default the package's own, for its descriptor. Raises as `Folders.open`."""
        return self._folders.open((*self._way, *filter(None, path.split("/"))), create=create)

    @contextmanager
    def keep_open(self) -> Iterator[None]:
        """Keep the package's folders open in the block, for work that reads and writes many files.

        What is created in it is on the disk after the next `flush`, at the latest at the end of the block; until then
        only this object knows it. Raises as `flush`.
        """
        if self._folders.is_kept:
            yield
            return
        with self._folders.keep(), closing(self._growing), self.flushing():
            try:
                yield
            finally:
                self._small.clear()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Look for each name once in the block: the caller holds the package, and says `look_again` of others."""
        self._names = self._found()
        try:
            yield
        finally:
            self._names = None

    def look_again(self) -> None:
        """Forget what was found: somebody else may have written here."""
        self._small.clear()
        if self._names is not None:
            self._names = self._found()

    def _found(self) -> Names:
        names = Names(self.open)
        for path in self._ahead:
            names.add(path)
        return names

    @contextmanager
    def flushing(self) -> Iterator[None]:
        """Flush at the end of the block. What ends it early is raised all the same, and a failed flush told with it."""
        try:
            yield
        except BaseException as exc:
            try:
                self.flush_now()
            except CaseboundError as failed:
                exc.add_note(str(failed))
            raise
        self.flush_now()

    async def flush(self) -> None:
        """Return when everything that was created is on the disk, with its names.

        Raises:
            UnavailableError: the disk does not take it (`WORKSPACE_WRITE`); then some of it may stand, in the order in
                which it was created, and each file whole.
            IntegrityError: other bytes stand where a file was created (`STORE_CONFLICT`).
            SettingsError: a link stands on the way (`WORKSPACE_LINK`).
        """
        with self._writing(), closing(self._settling()) as steps:
            for places in steps:
                await flush_together(places)

    def flush_now(self) -> None:
        """As `flush`, while everything else waits."""
        with self._writing(), closing(self._settling()) as steps:
            for places in steps:
                flush(places)

    def _settling(self) -> Generator[Collection[Place], None, None]:
        """Put everything that is ahead in its place. Yields what is to be flushed before the next step."""
        if self._ahead:
            yield from self._growing.create({self._below(path): data for path, data in self._ahead.items()})
            self._ahead.clear()
        if names := self._folders.take_changed():
            yield names

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Drop what cannot be written. What is only interrupted stays ahead, for the end of the work on the package."""
        try:
            yield
        except OSError as exc:
            self._drop()
            raise unwritable(self.root, exc) from exc
        except CaseboundError:
            self._drop()
            raise

    def _drop(self) -> None:
        self._ahead.clear()
        self.look_again()

    def _below(self, path: str) -> str:
        """Return a path of the package as one below the workspace."""
        return "/".join((*self._way, path))

    def read(self, path: str) -> bytes | None:
        """Return the bytes at `path`, None where there is nothing.

        Raises:
            SettingsError: a link stands on the way (`WORKSPACE_LINK`), or it cannot be read (`PACKAGE_UNREADABLE`).
        """
        if path in self._ahead:
            return self._ahead[path]
        folder_path, _, name = path.rpartition("/")
        try:
            if self._names is not None and path not in self._names:
                return None
            with self.open(folder_path) as folder:
                return read_at(folder, name, f"{self.root}/{path}")
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise unreadable(self.root / path, exc) from exc

    def require(self, path: str) -> bytes:
        """Return the bytes at `path`. Raises `IntegrityError` (`STORE_MISSING`) where there is nothing."""
        data = self.read(path)
        if data is None:
            raise IntegrityError("STORE_MISSING", path=path)
        return data

    def exists(self, path: str) -> bool:
        """Tell whether a file stands at `path`.

        Raises:
            SettingsError: nobody can tell (`PACKAGE_UNREADABLE`); in a package that is held, a link or a file stands in
                the way (`WORKSPACE_LINK`).
        """
        if path in self._ahead:
            return True
        try:
            if self._names is not None:
                return path in self._names
            os.lstat(f"{self.root}/{path}")
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as exc:
            raise unreadable(self.root / path, exc) from exc
        return True

    def names(self, path: str) -> list[str]:
        """Return the names in the folder at `path`, sorted; empty where it does not exist.

        Raises:
            SettingsError: it is a link or no folder (`WORKSPACE_LINK`), or cannot be read (`PACKAGE_UNREADABLE`).
        """
        way = f"{path}/" if path else ""
        ahead = {one.removeprefix(way).partition("/")[0] for one in self._ahead if one.startswith(way)}
        try:
            if self._names is not None:
                return sorted(self._names.within(path))
            with self.open(path) as folder:
                return sorted({*os.listdir(folder), *ahead})
        except FileNotFoundError:
            return sorted(ahead)
        except OSError as exc:
            raise unreadable(self.root / path, exc) from exc

    def paths(self) -> list[str]:
        """Return the path of every file in the package, sorted; links are listed, not followed. Raises as `files`."""
        if self._names is None:
            return sorted({*self._paths_below(""), *self._ahead})
        try:
            return sorted(self._names.files(self._paths_below))
        except OSError as exc:
            raise unreadable(self.root, exc) from exc

    def _paths_below(self, folder: str) -> Iterator[str]:
        return (path for path, _ in self._walk(folder) if not path.endswith("/"))

    def files(self) -> Iterator[tuple[str, bytes | None]]:
        """Yield path and bytes of every file on the disk, each read once; None for what is no file (links, pipes).

        A folder that holds nothing is yielded as its path and `/`, with None.

        Raises:
            SettingsError: the package itself is a link (`WORKSPACE_LINK`), or something cannot be read
                (`PACKAGE_UNREADABLE`).
        """
        for path, folder in self._walk():
            if path.endswith("/"):
                yield path, None
                continue
            try:
                yield path, read_at(folder, path.rpartition("/")[2], f"{self.root}/{path}")
            except SettingsError:
                yield path, None
            except OSError as exc:
                raise unreadable(self.root / path, exc) from exc

    def _walk(self, below: str = "") -> Iterator[tuple[str, int]]:
        """Yield the path of every file and empty folder with the descriptor of the folder that it is in."""
        try:
            with self.open(below) as folder:
                yield from _walk(folder, f"{below}/" if below else "", self.root)
        except OSError as exc:
            raise unreadable(self.root, exc) from exc

    def create(self, path: str, data: bytes) -> str:
        """Create the file once and return the digest of its bytes; the same bytes again are no error.

        It is on the disk at once; where the package is kept open, after the next flush, which then raises as `flush`.

        Raises:
            IntegrityError: other bytes stand there, or were created (`STORE_CONFLICT`).
            SettingsError: a link stands on the way (`WORKSPACE_LINK`).
            UnavailableError: the disk does not take it (`WORKSPACE_WRITE`); nothing stands at `path`.
        """
        if self._workspace is None:
            raise ContractError(
                "CONTRACT_BROKEN", found="a write to a package that is open for reading only", path=path
            )
        if self._folders.is_kept:
            self._take(path, data)
        else:
            with self.keep_open():
                self._take(path, data)
        self._created[path] = len(data), digest_of(data)
        return self._created[path][1]

    def _take(self, path: str, data: bytes) -> None:
        if self._ahead.get(path, data) != data:
            raise other_content(self.root / path)
        self._small.pop(path, None)
        if self._names is not None:
            try:
                self._names.add(path)
            except OSError as exc:
                raise unwritable(self.root, exc) from exc
        self._ahead[path] = data

    def create_artifact(self, path: str, artifact: Artifact, *, again: bool = False) -> str:
        """Create `artifact` at `path` and return its digest.

        Args:
            path: below the package.
            artifact: what is to stand there.
            again: it will be loaded again while the package is kept open, and nothing in it is anybody else's.
        """
        data = artifact.to_bytes()
        digest = self.create(path, data)
        if again:
            self._remember(path, artifact, len(data))
        return digest

    def load(self, path: str, model: type[A]) -> A:
        """Return the artifact at `path`; its bytes must be canonical and its format known.

        Raises:
            IntegrityError: `STORE_MISSING`, `STORE_JSON` or `STORE_VERSION`, with the pointer.
        """
        found = self.load_if(path, model)
        if found is None:
            raise IntegrityError("STORE_MISSING", path=path)
        return found

    def load_if(self, path: str, model: type[A]) -> A | None:
        """Return the artifact at `path`, None where there is nothing. Raises as `load`."""
        known = self._small.get(path)
        if type(known) is model:
            return known
        data = self.read(path)
        if data is None:
            return None
        artifact = parse_artifact(data, path, model)
        self._remember(path, artifact, len(data))
        return artifact

    def _remember(self, path: str, artifact: Artifact, size: int) -> None:
        """Keep an artifact where it is small enough, and the package is kept open."""
        if self._folders.is_kept and size <= MOST_REMEMBERED:
            self._small[path] = artifact

    def stamp(self, path: str) -> tuple[int, str]:
        """Return size and digest of the file at `path`: as it was created through this object, else as it is read.

        A file is created once and never written again, so one that changed since has been damaged: what was meant to
        stand there is the better answer. Raises `IntegrityError` where there is nothing.
        """
        if path not in self._created:
            data = self.require(path)
            return len(data), digest_of(data)
        return self._created[path]

    def digest(self, path: str) -> str:
        """Return the digest of the bytes at `path`. Raises `IntegrityError` where there is nothing."""
        return digest_of(self.require(path))


def _walk(folder: int, way: str, root: Path) -> Iterator[tuple[str, int]]:
    with os.scandir(folder) as entries:
        names = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    if not names and way:
        yield way, folder
    for name, is_folder in names:
        if not is_folder:
            yield way + name, folder
            continue
        if way.count("/") >= MOST_FOLDERS:
            found = f"folders that nest more than {MOST_FOLDERS} deep"
            raise SettingsError("PACKAGE_UNREADABLE", path=str(root / way), found=found, hint="remove them")
        below = open_below(folder, name, root, (way + name).split("/"))
        try:
            yield from _walk(below, f"{way}{name}/", root)
        finally:
            os.close(below)


def parse_artifact(data: bytes, path: str, model: type[A]) -> A:
    """Return the artifact whose canonical form is exactly `data`.

    Raises:
        IntegrityError: `STORE_JSON` (not strict, not canonical, not of the format), `STORE_VERSION` (another format).
    """
    artifact = model.from_bytes(data)
    if artifact is None:
        raise _why_not(data, path, model)
    return artifact


def _why_not(data: bytes, path: str, model: type[Artifact]) -> IntegrityError:
    """Return the error that says at which place `data` is no artifact of `model`."""
    value = parse_canonical(data, path)
    known = str(model.model_fields["format"].default)
    found = value.get("format")
    if found != known and isinstance(found, str) and found.rpartition("/")[0] == known.rpartition("/")[0]:
        return IntegrityError("STORE_VERSION", path=path, pointer="/format", found=repr(found), expected=known)
    try:
        artifact = model.from_json(value)
        pointer = first_difference(value, parse_json(artifact.to_bytes()))
    except ValidationError as exc:
        error = exc.errors(include_url=False, include_input=False)[0]
        return IntegrityError("STORE_JSON", path=path, pointer=json_pointer(error["loc"]), found=error["msg"])
    except (ContractError, RecursionError):
        return IntegrityError("STORE_JSON", path=path, found="nesting too deep")
    return IntegrityError(
        "STORE_JSON", path=path, pointer=pointer, found="a value that is written otherwise, or missing"
    )


def parse_canonical(data: bytes, path: str) -> Any:  # noqa: ANN401  # any JSON object
    """Return the JSON object that `data` is the canonical form of. Raises `IntegrityError` (`STORE_JSON`)."""
    try:
        value = parse_json(data)
        canonical = canonical_bytes(value) == data
    except JsonError as exc:
        raise IntegrityError("STORE_JSON", path=path, pointer=exc.pointer, found=exc.reason) from exc
    except ContractError as exc:
        raise IntegrityError("STORE_JSON", path=path, pointer=exc.pointer, found=exc.found) from exc
    if not isinstance(value, dict):
        raise IntegrityError("STORE_JSON", path=path, found=f"a JSON {type(value).__name__}", expected="an object")
    if not canonical:
        raise IntegrityError("STORE_JSON", path=path, found="bytes that are not the canonical form of their value")
    return value
