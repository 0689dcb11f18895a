"""Which file is run, and what it is: its version and its digest.

The npm package puts a Node script on the path, which starts the native program beside it. The native program is what
answers, so it is what is run and digested: the digest of the script would say nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from casebound.canonical import RunningDigest
from casebound.errors import SettingsError
from casebound.processes import run_bounded

PATH = os.defpath
_PATIENCE_S = 30
_POINTER = "llm.codex.program"
_VERSION = re.compile(rb"codex-cli [0-9A-Za-z.+-]{1,40}")
_PART = 1 << 20


@dataclass(frozen=True, slots=True)
class Program:
    """The program that is run: its file, and what it says of itself."""

    path: Path
    version: str

    def digest(self) -> str:
        """Return the digest of the file as it is now. Raises `OSError`."""
        state = self.path.stat()
        return _digest(self.path, (state.st_ino, state.st_size, state.st_mtime_ns))


def find_program(name: str) -> Program:
    """Return the program that the settings name, after asking it for its version.

    Raises:
        SettingsError: there is none, it is not the Codex CLI, or only its Node script can be found.
    """
    found = shutil.which(str(Path(name).expanduser()))
    if found is None:
        raise _refusal(
            name, "no such program", 'the Codex CLI on the path, or its absolute path: see "Install" in its guide'
        )
    path = Path(found).resolve()
    if path.suffix == ".js":
        path = _native_beside(path)
    return Program(path, _version_of(path))


def _native_beside(script: Path) -> Path:
    """Return the one native program that belongs to the package of `script`."""
    package = script.parent.parent
    platforms = (package, *package.parent.glob("codex-*"), *package.glob("node_modules/@openai/codex-*"))
    natives = {path for platform in platforms for path in platform.glob("vendor/*/bin/codex*") if path.stem == "codex"}
    if len(natives) != 1:
        found = f"a Node script with {len(natives)} native programs beside it"
        raise _refusal(str(script), found, "the native program of the npm package: vendor/…/bin/codex")
    return natives.pop()


def _version_of(path: Path) -> str:
    command = [str(path), "--version"]
    with tempfile.TemporaryDirectory(prefix="casebound-codex-", ignore_cleanup_errors=True) as home:
        variables = {"PATH": PATH, "HOME": home, "CODEX_HOME": home}  # it writes there even now
        try:
            _, output = run_bounded(command, timeout_s=_PATIENCE_S, keep_output=True, environment=variables)
        except (OSError, ValueError) as exc:
            raise _refusal(str(path), getattr(exc, "strerror", None) or "it cannot be started") from None
    if not _VERSION.fullmatch(output.strip()):
        raise _refusal(str(path), "a program that does not answer --version as the Codex CLI does")
    return output.strip().decode()


def _refusal(path: str, found: str, expected: str = "the Codex CLI") -> SettingsError:
    return SettingsError("SETTINGS_VALUE", pointer=_POINTER, found=f"{path}: {found}", expected=expected)


@lru_cache(maxsize=8)
def _digest(path: Path, _: tuple[int, int, int]) -> str:
    """Return the digest of a file that is hundreds of megabytes large, anew only where its state is another one."""
    digest = RunningDigest()
    with path.open("rb") as file:
        while part := file.read(_PART):
            digest.update(part)
    return digest.digest()
