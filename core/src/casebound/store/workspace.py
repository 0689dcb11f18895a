"""A workspace: the folder of many packages, and the temporary files of all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from casebound.contracts.base import SAFE_NAME
from casebound.contracts.case import Admission
from casebound.errors import SettingsError
from casebound.store import layout
from casebound.store.folders import Folders
from casebound.store.package import TMP, Package
from casebound.store.write import sweep, unwritable
from casebound.words import counted

CASES = "cases"
_SAFE_NAME = re.compile(SAFE_NAME)
_FEW, _MOST_NEAR = 10, 5  # ids of packages that are all shown; otherwise those that are most like the one asked for


class Workspace:
    """`<root>/cases/<package-id>/` and `<root>/tmp/`.

    Args:
        root: what lies above it is resolved once; neither it nor anything below may be a link.
    """

    def __init__(self, root: Path) -> None:
        named = root if root.name not in ("", "..") else root.resolve()
        self.root = named.parent.resolve() / named.name
        self.cases = self.root / CASES
        self.tmp = self.root / TMP

    def prepare(self) -> None:
        """Create the folders, and remove what processes that were killed left behind.

        Raises:
            UnavailableError: it cannot be written (`WORKSPACE_WRITE`).
            SettingsError: a folder is a link (`WORKSPACE_LINK`).
        """
        try:
            with suppress(FileExistsError):
                self.root.mkdir(parents=True)
            folders = Folders(self.root)
            with folders.open((CASES,), create=True), folders.open((TMP,), create=True) as tmp:
                sweep(tmp)
        except OSError as exc:
            raise unwritable(self.root, exc) from exc

    def package(self, package_id: str) -> Package:
        """Return the package of that id, which need not exist yet. Raises `SettingsError` (`CASE_ID`)."""
        if not _SAFE_NAME.fullmatch(package_id):
            raise SettingsError("CASE_ID", found=repr(package_id))
        return Package(self.cases / package_id, workspace=self.root)

    def admit(self, package: Package) -> None:
        """Create the folder of a new package.

        Raises:
            UnavailableError: it cannot be written (`WORKSPACE_WRITE`).
            SettingsError: a folder on the way is a link (`WORKSPACE_LINK`).
        """
        try:
            with package.open(create=True):
                pass
        except OSError as exc:
            raise unwritable(package.root, exc) from exc

    def package_ids(self) -> list[str]:
        """Return the ids of all packages, sorted. Raises as `prepare`."""
        return [name for name in Package(self.root, workspace=self.root).names(CASES) if _SAFE_NAME.fullmatch(name)]

    def admissions(self) -> Iterator[Admission]:
        """Yield the admission of every package that has one, in the order of ids. Raises `IntegrityError`."""
        for package_id in self.package_ids():
            admission = self.package(package_id).load_if(layout.ADMISSION, Admission)
            if admission is not None:
                yield admission

    def find(self, case: str) -> Package:
        """Return the package whose id is `case`, or the only one whose case id it is.

        Raises:
            SettingsError: `CASE_UNKNOWN`; several packages of that case are listed.
        """
        if _SAFE_NAME.fullmatch(case) and self.package(case).exists(layout.PACKAGE):
            return self.package(case)
        matches = [admission.package_id for admission in self.admissions() if admission.case_id == case]
        if len(matches) == 1:
            return self.package(matches[0])
        if matches:
            found = f"{case!r} in several packages"
            raise SettingsError("CASE_UNKNOWN", path=str(self.root), found=found, allowed=matches)
        raise self.unknown(case)

    def unknown(self, case: str) -> SettingsError:
        """Return the refusal of a case that is not here (`CASE_UNKNOWN`): with the ids that are like it."""
        known = self.package_ids()
        near = get_close_matches(case, known, n=_MOST_NEAR) if len(known) > _FEW else known
        others = len(known) - len(near)
        return SettingsError(
            "CASE_UNKNOWN",
            path=str(self.root),
            found=f"{case!r}, and {counted(others, 'package')} with other ids" if others else repr(case),
            allowed=near,
        )
