"""The package under examination: its bytes, what was found wrong with them, and the comparison with what is derived."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from casebound.canonical import digest_of, file_name_of
from casebound.contracts.base import Artifact
from casebound.contracts.findings import VerificationFinding
from casebound.errors import CODES, IntegrityError
from casebound.pointer import first_difference
from casebound.store.package import Package, parse_artifact
from casebound.strict_json import JsonError, parse_json

A = TypeVar("A", bound=Artifact)


class Stop(Exception):
    """What follows cannot be derived, because something that it needs does not hold; it is already noted."""


class Evidence:
    """Holds the bytes of each file, read once, and collects findings.

    A file that is missing or broken is noted, then `Stop` is raised. What no derivation has looked at by the end has no
    place in the package: `unexplained` lists it.
    """

    def __init__(self, root: Path) -> None:
        self.findings: list[VerificationFinding] = []
        self.folders: list[str] = []
        self._bytes: dict[str, bytes | None] = {}
        self._digests: dict[str, str] = {}
        self._explained: set[str] = set()
        for path, data in Package(root.resolve()).files():
            if path.endswith("/"):
                self.folders.append(path)
            else:
                self._bytes[path] = data
        self.paths = list(self._bytes)

    def note(self, code: str, file: str, message: str, pointer: str = "") -> None:
        """Note something that does not hold, once."""
        finding = VerificationFinding(code=code, file=file, pointer=pointer, message=message)
        if finding not in self.findings:
            self.findings.append(finding)

    def has(self, path: str) -> bool:
        """Tell whether a file stands at `path`."""
        return path in self._bytes

    def below(self, folder: str) -> list[str]:
        """Return the path of every file below `folder`."""
        return [path for path in self.paths if path.startswith(f"{folder}/")]

    def content(self, path: str) -> bytes | None:
        """Return the bytes at `path` for a look from outside; None where they cannot be had."""
        return self._bytes.get(path)

    def seen(self, path: str) -> tuple[int, str] | None:
        """Return size and digest of what is at `path`, from outside; None where it cannot be had."""
        data = self._bytes.get(path)
        if data is None:
            return None
        if path not in self._digests:
            self._digests[path] = digest_of(data)
        return len(data), self._digests[path]

    def data(self, path: str) -> bytes:
        """Return the bytes at `path`, which a derivation asks for. Raises `Stop` where there are none."""
        self._explained.add(path)
        data = self._bytes.get(path)
        if data is None:
            if path in self._bytes:
                self.note("WORKSPACE_LINK", path, "a link, or something that is no file")
            else:
                self.note("STORE_MISSING", path, CODES["STORE_MISSING"].summary)
            raise Stop
        return data

    def unexplained(self) -> list[str]:
        """Return the path of every file that no derivation asked for."""
        return [path for path in self.paths if path not in self._explained]

    def digest(self, path: str) -> str:
        """Return the digest of the bytes at `path`. Raises `Stop` where there are none."""
        self.data(path)
        seen = self.seen(path)
        assert seen is not None  # noqa: S101  # the line above had it
        return seen[1]

    def load(self, path: str, model: type[A]) -> A:
        """Return the artifact at `path`. Raises `Stop` where it does not hold by itself."""
        try:
            return parse_artifact(self.data(path), path, model)
        except IntegrityError as exc:
            self.note(exc.code, path, f"{exc.summary}: {exc.found}", exc.pointer or "")
            raise Stop from exc

    def addressed(self, path: str, model: type[A]) -> A:
        """Return the artifact at `path`, whose name is its digest. Raises `Stop` where it is not."""
        if file_name_of(self.digest(path)) != path.rpartition("/")[2]:
            self.note("STORE_DIGEST", path, "it is not what its name says")
            raise Stop
        return self.load(path, model)

    def compare(self, path: str, derived: Artifact | bytes) -> bool:
        """Compare what stands at `path` with what was derived, byte for byte; note the first place that differs."""
        expected = derived if isinstance(derived, bytes) else derived.to_bytes()
        try:
            data = self.data(path)
        except Stop:
            return False
        if data == expected:
            return True
        self.note(
            "VERIFY_DERIVED", path, "it is not what follows from the files before it", _difference(data, expected)
        )
        return False

    def derived(self, path: str, derived: A) -> A:
        """Compare, and return what stands on disk where it loads: later steps were made from that."""
        return derived if self.compare(path, derived) else self.load(path, type(derived))

    def expect(self, path: str, pointer: str, found: object, expected: object) -> None:
        """Note a field that is not what it must be."""
        if found != expected:
            self.note("VERIFY_BINDING", path, f"{_shown(found)} stands where {_shown(expected)} follows", pointer)


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 90 else text[:90] + "…"


def _difference(data: bytes, expected: bytes) -> str:
    """Return the JSON pointer of the first difference; empty where the bytes are no JSON, or only written otherwise."""
    try:
        return first_difference(parse_json(data), parse_json(expected)) or ""
    except JsonError as exc:
        return exc.pointer
