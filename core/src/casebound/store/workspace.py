"""A workspace: the folder of many packages, and the temporary files of all of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from casebound.contracts.case import Admission
from casebound.errors import SettingsError, UnavailableError
from casebound.store import layout
from casebound.store.package import Package

SAFE_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._#-]{0,99}$")


class Workspace:
    """`<root>/cases/<package-id>/` and `<root>/tmp/`.

    Args:
        root: resolved once; below it no link is ever followed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.cases = self.root / "cases"
        self.tmp = self.root / "tmp"

    def prepare(self) -> None:
        """Create the folders. Raises `UnavailableError` (`WORKSPACE_WRITE`) or `SettingsError` (`WORKSPACE_LINK`)."""
        for folder in (self.cases, self.tmp):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as exc:
                raise UnavailableError("WORKSPACE_WRITE", path=str(folder), found=os.strerror(exc.errno or 0)) from exc
            if folder.is_symlink():
                raise SettingsError("WORKSPACE_LINK", path=str(folder), found="a link")

    def package(self, package_id: str) -> Package:
        """Return the package of that id, which need not exist yet. Raises `SettingsError` (`CASE_ID`)."""
        if not SAFE_NAME.match(package_id):
            raise SettingsError("CASE_ID", found=repr(package_id))
        root = self.cases / package_id
        if root.is_symlink():
            raise SettingsError("WORKSPACE_LINK", path=str(root), found="a link")
        return Package(root, tmp=self.tmp)

    def admit(self, package: Package) -> None:
        """Create the folder of a new package. Raises `UnavailableError` (`WORKSPACE_WRITE`)."""
        try:
            package.root.mkdir(exist_ok=True)
        except OSError as exc:
            raise UnavailableError("WORKSPACE_WRITE", path=str(package.root), found=os.strerror(exc.errno or 0)) from exc

    def package_ids(self) -> list[str]:
        """Return the ids of all packages, sorted."""
        try:
            return sorted(name for name in os.listdir(self.cases) if SAFE_NAME.match(name))
        except FileNotFoundError:
            return []

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
        if SAFE_NAME.match(case) and self.package(case).exists(layout.PACKAGE):
            return self.package(case)
        matches = [admission.package_id for admission in self.admissions() if admission.case_id == case]
        if len(matches) == 1:
            return self.package(matches[0])
        raise SettingsError(
            "CASE_UNKNOWN",
            path=str(self.root),
            found=repr(case) + (" in several packages" if matches else ""),
            allowed=matches or self.package_ids(),
        )
