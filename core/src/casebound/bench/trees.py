"""Digests of sets of files: equal paths and bytes give an equal digest, wherever and however they are installed.

Rules (scope `casebound-entity-measurement-runtime/v2`):
- A tree is every regular file, by its relative path with `/`, in NFC, and its raw bytes; sorted by path.
- The order in which a folder lists its files, times, permissions and the place of the tree do not count.
- Left out: `__pycache__` and `*.pyc`, which the interpreter writes; nothing else of an import package. Of a
  `.dist-info`: `RECORD`, `INSTALLER`, `REQUESTED`, `direct_url.json`, `uv_cache.json` and `WHEEL`, which say how, from
  where and by which tool it was installed. Of what an installer puts elsewhere: scripts, whose first line is a path,
  and the `.pth` files and finders of an editable install, which hold the path of its source.
- A link to a file counts as the file (some installers link); a link to a folder, a pipe, or a name that is no Unicode
  is refused: what cannot be bound may not be there.
"""

from __future__ import annotations

import csv
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution
from importlib.util import find_spec
from pathlib import Path

from casebound.canonical import RunningDigest, canonical_bytes, digest_of
from casebound.contracts.bench_identity import TREE_SCOPE, Declaration, InstalledTree, Tree
from casebound.errors import SettingsError
from casebound.strict_json import is_unicode
from casebound.text import compose

LEFT_OUT_FOLDERS = ("__pycache__",)
LEFT_OUT_SUFFIXES = (".pyc",)
LEFT_OUT_OF_METADATA = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "WHEEL")
EDITABLE = ("__editable__", "_editable_impl_")  # how builders name what leads to the source
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
    metadata = _metadata_folder(find_distribution(name, folders)) / "METADATA"
    return Declaration(name=f"{name} METADATA", digest=digest_file(metadata)[0])


def find_distribution(name: str, folders: Iterable[str] | None = None) -> Distribution:
    """Return the distribution `name` that an import would use. Raises `SettingsError` (`BENCH_IDENTITY`)."""
    places = sys.path if folders is None else list(folders)
    found = next(iter(Distribution.discover(name=name, path=places)), None)
    if found is None or found.read_text("METADATA") is None:
        raise SettingsError("BENCH_IDENTITY", where=f"distribution {name}", found="it is not installed")
    return found


def _packages(found: Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the top-level packages and modules, each by its name: as `RECORD` lists them, else where `.pth` points."""
    tops = sorted({path.partition("/")[0] for path in _recorded(found)})
    modules = [top for top in tops if _is_module(top)]
    links = [Path(str(found.locate_file(top))) for top in tops if top.endswith(".pth")]
    places = [place for link in links for place in _linked_folders(link)]
    if modules:
        for module in modules:
            yield module, Path(str(found.locate_file(module)))
    elif places:
        for place in places:
            yield from _modules_in(place)
    else:  # an editable install that hooks the import system, or one without a `RECORD`
        yield from _named_modules(found)


def _recorded(found: Distribution) -> list[str]:
    """Return the paths of `RECORD`, of those too that are gone (`Distribution.files` may pass over them)."""
    try:
        return [row[0] for row in csv.reader((found.read_text("RECORD") or "").splitlines()) if row]
    except (csv.Error, UnicodeDecodeError) as exc:
        where = f"distribution {found.name}"
        raise SettingsError("BENCH_IDENTITY", where=where, found="a RECORD that is no table") from exc


def _is_module(top: str) -> bool:
    apart = top in ("..", *LEFT_OUT_FOLDERS) or top.endswith((".dist-info", ".data", ".pth"))
    return not apart and not top.startswith(EDITABLE)


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
    folder = _metadata_folder(found)
    for path in sorted(folder.iterdir()):
        if path.name not in LEFT_OUT_OF_METADATA:
            yield f"{folder.name}/{path.name}", path


def _metadata_folder(found: Distribution) -> Path:
    name = _normalized(found.name)
    for folder in sorted(Path(str(found.locate_file(""))).glob("*.dist-info")):
        if _normalized(folder.name.partition("-")[0]) == name:
            return folder
    raise SettingsError("BENCH_IDENTITY", where=f"distribution {found.name}", found="no folder of its metadata")


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
