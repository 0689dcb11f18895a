"""Digests of sets of files: equal paths and bytes give an equal digest, wherever and however they are installed.

Rules (scope `casebound-entity-measurement-runtime/v2`):
- A tree is every regular file, by its relative path with `/`, in NFC, and its raw bytes; sorted by path.
- The order in which a folder lists its files, times, permissions and the place of the tree do not count.
- Left out: `__pycache__` and `*.pyc`, which the interpreter writes; nothing else of an import package. Of a
  `.dist-info`: `RECORD`, `INSTALLER`, `REQUESTED`, `direct_url.json`, `uv_cache.json` and `WHEEL`, which say how, from
  where and by which tool it was installed; of what an installer puts elsewhere: scripts, whose first line is a path.
- A link to a file counts as the file (some installers link); a link to a folder, a pipe, or a name that is no Unicode
  is refused: what cannot be bound may not be there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from casebound.canonical import RunningDigest, canonical_bytes, digest_of
from casebound.contracts.bench_identity import TREE_SCOPE, Declaration, InstalledTree, Tree
from casebound.errors import SettingsError
from casebound.strict_json import is_unicode
from casebound.text import compose

LEFT_OUT_FOLDERS = ("__pycache__",)
LEFT_OUT_SUFFIXES = (".pyc",)
LEFT_OUT_OF_METADATA = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "WHEEL")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class _File:
    digest: str
    size: int


def digest_file(path: Path) -> tuple[str, int]:
    """Return the digest of a regular file, and its size. Raises `SettingsError` (`BENCH_IDENTITY`)."""
    running, size = RunningDigest(), 0
    try:
        # A pipe must not keep us waiting for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _unbound(path, "something that is no regular file")
            while part := file.read(_CHUNK):
                running.update(part)
                size += len(part)
    except OSError as exc:
        raise _unbound(path, os.strerror(exc.errno or 0)) from exc
    return running.digest(), size


def digest_tree(roots: Mapping[str, Path]) -> Tree:
    """Return the tree of files and folders.

    Args:
        roots: the relative path under which each counts → where it is; a root itself may be reached through a link.

    Raises:
        SettingsError: something cannot be read or bound, or two paths are one in NFC (`BENCH_IDENTITY`).
    """
    found: dict[str, _File] = {}
    for name, root in roots.items():
        for relative, path in _walk(name, root):
            key = compose(relative)
            if key in found:
                raise _unbound(path, "a second file under this name")
            found[key] = _File(*digest_file(path))
    files = [[name, found[name].size, found[name].digest] for name in sorted(found)]
    digest = digest_of(canonical_bytes({"scope": TREE_SCOPE, "files": files}))
    return Tree(digest=digest, files=len(files), bytes=sum(file.size for file in found.values()))


def _walk(name: str, place: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files at or below `place`, each with its relative path."""
    if not place.is_dir():
        yield name, place
        return
    try:
        with os.scandir(place) as listed:
            entries = list(listed)
    except OSError as exc:
        raise _unbound(place, os.strerror(exc.errno or 0)) from exc
    for entry in entries:
        path = Path(entry.path)
        if not is_unicode(entry.name):
            raise _unbound(place, "a file whose name is no Unicode")
        if entry.is_dir():
            if entry.name in LEFT_OUT_FOLDERS:
                continue
            if entry.is_symlink():
                raise _unbound(path, "a link to a folder")
            yield from _walk(f"{name}/{entry.name}", path)
        elif not entry.name.endswith(LEFT_OUT_SUFFIXES):
            yield f"{name}/{entry.name}", path


def _unbound(path: Path, found: str) -> SettingsError:
    return SettingsError("BENCH_IDENTITY", path=str(path), found=found, expected="regular files that can be read")


# --- installed distributions ----------------------------------------------------------------------------------------


def installed_tree(name: str, folders: Iterable[str] | None = None) -> InstalledTree:
    """Return version and tree of an installed distribution, editable or not.

    Args:
        name: of the distribution.
        folders: where to look; None: `sys.path`.

    Raises:
        SettingsError: it is not installed, or its files cannot be found or bound (`BENCH_IDENTITY`).
    """
    found = find_distribution(name, folders)
    roots = dict(_packages(found))
    if not roots:
        raise SettingsError(
            "BENCH_IDENTITY", where=f"distribution {name}", found="no module", hint="install it again, as a wheel"
        )
    roots.update(_metadata(found))
    return InstalledTree(distribution=name, version=found.version, tree=digest_tree(roots))


def declaration_of(name: str, folders: Iterable[str] | None = None) -> Declaration:
    """Return the digest of a distribution's `METADATA`. Raises as `installed_tree`."""
    found = find_distribution(name, folders)
    place = next((path for listed, path in _metadata(found) if listed.endswith("/METADATA")), None)
    if place is None:
        raise SettingsError("BENCH_IDENTITY", where=f"distribution {name}", found="no METADATA")
    return Declaration(name=f"{name} METADATA", digest=digest_file(place)[0])


def find_distribution(name: str, folders: Iterable[str] | None = None) -> Distribution:
    """Return the distribution `name` that an import would use. Raises `SettingsError` (`BENCH_IDENTITY`)."""
    if folders is None:
        try:
            return distribution(name)
        except PackageNotFoundError as exc:
            raise _missing(name) from exc
    found = next(iter(Distribution.discover(name=name, path=list(folders))), None)
    if found is None:
        raise _missing(name)
    return found


def _missing(name: str) -> SettingsError:
    return SettingsError("BENCH_IDENTITY", where=f"distribution {name}", found="it is not installed")


def _listed(found: Distribution) -> list[PurePosixPath]:
    return [PurePosixPath(str(path)) for path in found.files or ()]


def _packages(found: Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the top-level packages and modules, each by its name: as `RECORD` lists them, else where `.pth` points."""
    listed = _listed(found)
    tops = {path.parts[0] for path in listed if path.parts[0] != ".." and not _is_metadata(path.parts[0])}
    links = {top for top in tops if top.endswith(".pth")}
    modules = sorted(top for top in tops - links if top not in LEFT_OUT_FOLDERS)
    if modules:
        for module in modules:
            yield module, Path(str(found.locate_file(module)))
        return
    places = [place for link in sorted(links) for place in _linked_folders(Path(str(found.locate_file(link))))]
    if places:
        for place in places:
            yield from _modules_in(place)
    else:  # an editable install that hooks the import system
        yield from _named_modules(found)


def _is_metadata(top: str) -> bool:
    return top.endswith((".dist-info", ".data"))


def _linked_folders(link: Path) -> list[Path]:
    """Return the folders that a `.pth` file adds to the path; its lines of code are none."""
    try:
        lines = link.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise _unbound(link, "a .pth file that cannot be read") from exc
    named = [line.strip() for line in lines if line.strip() and not line.startswith(("#", "import ", "import\t"))]
    return [link.parent / line for line in named]


def _modules_in(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.iterdir() if folder.is_dir() else ()):
        if path.suffix == ".py" or (path / "__init__.py").is_file():
            yield path.name, path


def _named_modules(found: Distribution) -> Iterator[tuple[str, Path]]:
    for top in sorted({point.module.partition(".")[0] for point in found.entry_points}):
        spec = find_spec(top)
        if spec is not None and spec.origin is not None:
            place = Path(spec.origin)
            yield (top, place.parent) if spec.submodule_search_locations else (place.name, place)


def _metadata(found: Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the files of the `.dist-info` that say what was installed, not how."""
    for path in _listed(found):
        inner = path.parts[1:]
        if path.parts[0].endswith(".dist-info") and inner and inner[0] not in LEFT_OUT_OF_METADATA:
            yield str(path), Path(str(found.locate_file(str(path))))
