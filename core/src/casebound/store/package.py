"""One package: read by path, create by path. It holds no state of its own; what is on disk is the state."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from casebound.canonical import JsonError, canonical_bytes, digest_of, json_pointer, parse_json
from casebound.contracts.base import Artifact
from casebound.errors import ContractError, IntegrityError, UnavailableError
from casebound.store.write import create_file, open_folder, read_at

A = TypeVar("A", bound=Artifact)


class Package:
    """A package folder.

    Args:
        root: the folder; it need not exist before the first `create`.
        tmp: where files grow before they get their name (same file system); None: reading only.
    """

    def __init__(self, root: Path, *, tmp: Path | None = None) -> None:
        self.root = root
        self._tmp = tmp

    def read(self, path: str) -> bytes | None:
        """Return the bytes at `path`, None where there is nothing.

        Raises:
            SettingsError: a link stands on the way (`WORKSPACE_LINK`).
            UnavailableError: the file cannot be read.
        """
        *folders, name = path.split("/")
        try:
            with open_folder(self.root, folders) as folder:
                return read_at(folder, name)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise UnavailableError("WORKSPACE_WRITE", path=str(self.root / path), found=os.strerror(exc.errno or 0)) from exc

    def require(self, path: str) -> bytes:
        """Return the bytes at `path`. Raises `IntegrityError` (`STORE_MISSING`) where there is nothing."""
        data = self.read(path)
        if data is None:
            raise IntegrityError("STORE_MISSING", path=path)
        return data

    def exists(self, path: str) -> bool:
        """Tell whether a file stands at `path`."""
        return os.path.lexists(self.root / path)

    def names(self, path: str) -> list[str]:
        """Return the names in the folder at `path`, sorted; empty where it does not exist."""
        try:
            return sorted(os.listdir(self.root / path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def paths(self) -> list[str]:
        """Return the path of every file in the package, sorted; links are listed, not followed.

        Raises:
            UnavailableError: a folder cannot be read (`WORKSPACE_WRITE`).
        """
        found: list[str] = []
        waiting = [("", os.fspath(self.root))]
        while waiting:
            prefix, folder = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append((f"{prefix}{entry.name}/", entry.path))
                        else:
                            found.append(prefix + entry.name)
            except OSError as exc:
                raise UnavailableError("WORKSPACE_WRITE", path=folder, found=os.strerror(exc.errno or 0)) from exc
        return sorted(found)

    def create(self, path: str, data: bytes) -> str:
        """Create the file once and return the digest of its bytes; the same bytes again are no error.

        Raises: as `store.write.create_file`.
        """
        if self._tmp is None:
            raise ContractError("CONTRACT_BROKEN", found="a write to a package that is open for reading only", path=path)
        create_file(self.root, path, data, tmp=self._tmp)
        return digest_of(data)

    def create_artifact(self, path: str, artifact: Artifact) -> str:
        """Create `artifact` at `path` and return its digest."""
        return self.create(path, artifact.to_bytes())

    def load(self, path: str, model: type[A]) -> A:
        """Return the artifact at `path`; its bytes must be canonical and its format known.

        Raises:
            IntegrityError: `STORE_MISSING`, `STORE_JSON` or `STORE_VERSION`, with the pointer.
        """
        return parse_artifact(self.require(path), path, model)

    def load_if(self, path: str, model: type[A]) -> A | None:
        """Return the artifact at `path`, None where there is nothing. Raises as `load`."""
        data = self.read(path)
        return None if data is None else parse_artifact(data, path, model)

    def digest(self, path: str) -> str:
        """Return the digest of the bytes at `path`. Raises `IntegrityError` where there is nothing."""
        return digest_of(self.require(path))


def parse_artifact(data: bytes, path: str, model: type[A]) -> A:
    """Return the artifact that `data` is; the bytes themselves are checked, nothing is re-serialized and believed.

    Raises:
        IntegrityError: `STORE_JSON` (not strict, not canonical, not of the format), `STORE_VERSION` (another format).
    """
    value = parse_canonical(data, path)
    try:
        return model.from_json(value)
    except ValidationError as exc:
        error = exc.errors(include_url=False, include_input=False)[0]
        if error["loc"] == ("format",):
            found = value.get("format")
            raise IntegrityError(
                "STORE_VERSION", path=path, pointer="/format", found=repr(found), expected=model.model_fields["format"].default
            ) from exc
        raise IntegrityError("STORE_JSON", path=path, pointer=json_pointer(error["loc"]), found=error["msg"]) from exc


def parse_canonical(data: bytes, path: str) -> Any:
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
