"""Where a bundle may be written: a new folder, by its absolute path, outside the repository, in a folder that exists.

A bundle is evidence about a repository's state; inside it, it would be part of that state. Links do not help: the path
as it is written and the place behind its links are both looked at.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from casebound.errors import SettingsError
from casebound.store.write import create_new_file


def find_repository(start: Path) -> Path | None:
    """Return the first of `find_repositories`, None where there is none."""
    return next(iter(find_repositories(start)), None)


def find_repositories(start: Path) -> list[Path]:
    """Return the repository of `start` as it is written, and the one behind its links where that is another.

    A repository is the nearest folder with `.git`, else the uppermost one with `pyproject.toml`.

    Args:
        start: a file or folder, which is followed upwards.
    """
    places = dict.fromkeys((Path(os.path.abspath(start)), Path(os.path.realpath(start))))
    return list(dict.fromkeys(root for place in places if (root := _root_above(place)) is not None))


def _root_above(place: Path) -> Path | None:
    folders = [place, *place.parents]
    roots = [folder for folder in folders if (folder / ".git").exists()][:1]
    roots += [folder for folder in folders if (folder / "pyproject.toml").is_file()][-1:]
    return roots[0] if roots else None


def refuse_output(output: Path, repositories: Iterable[Path]) -> None:
    """Refuse a place where no bundle may be written.

    Raises:
        SettingsError: it is relative, exists, has no parent folder, or lies in a repository (`BENCH_OUTPUT`).
    """
    if not output.is_absolute():
        raise _refusal(output, "a relative path")
    if ".." in output.parts or not output.name:
        raise _refusal(output, "a path that does not name a new folder")
    if not output.parent.is_dir():
        raise _refusal(output, "no folder that would hold it")
    if os.path.lexists(output):
        raise _refusal(output, "something that is there already")
    refuse_inside(output, repositories)


def refuse_inside(output: Path, repositories: Iterable[Path]) -> None:
    """Refuse a place in a repository, also behind links. Raises `SettingsError` (`BENCH_OUTPUT`)."""
    above = list(_folders_above(output))
    for repository in repositories:
        if any(os.path.samefile(folder, repository) for folder in above):
            raise _refusal(output, f"a place in the repository {repository}")


def _folders_above(output: Path) -> Iterator[Path]:
    for parent in dict.fromkeys((output.parent, Path(os.path.realpath(output.parent)))):
        yield from (parent, *parent.parents)


def _refusal(output: Path, found: str) -> SettingsError:
    return SettingsError("BENCH_OUTPUT", path=str(output), found=found)


def write_folder(output: Path, files: Mapping[str, bytes], *, private: bool = False) -> None:
    """Create the folder `output` with `files`, whole or not at all.

    Args:
        output: must not exist; its parent must.
        files: relative path with `/` → content.
        private: folders and files are for their owner alone.

    Raises:
        SettingsError: it exists, or cannot be written (`BENCH_OUTPUT`); then nothing stands there.
    """
    growing = output.parent / f".casebound-{uuid.uuid4().hex}"
    folder_mode, file_mode = (0o700, 0o600) if private else (0o777, 0o666)
    try:
        growing.mkdir(folder_mode)
        for path, data in files.items():
            target = growing / path
            target.parent.mkdir(folder_mode, parents=True, exist_ok=True)
            create_new_file(target, data, mode=file_mode)
        output.mkdir()  # exclusively; a rename would replace an empty folder of somebody else
        growing.rename(output)
    except OSError as exc:
        raise _refusal(output, os.strerror(exc.errno or 0)) from exc
    finally:
        shutil.rmtree(growing, ignore_errors=True)
