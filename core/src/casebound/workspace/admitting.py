"""A new case in the workspace: from the admission of a report to the package that holds its bytes."""

from __future__ import annotations

from casebound import __version__
from casebound.contracts.case import Admission
from casebound.contracts.interpretation import Distribution, PackageIdentity
from casebound.host import Host
from casebound.intake.admission import check_duplicate
from casebound.store import Package, Workspace, layout
from casebound.store.lock import exclusive


def admit_case(
    workspace: Workspace, admission: Admission, data: bytes, host: Host, *, wait: bool = False
) -> tuple[Package, bool]:
    """Return the package of a report, and whether it is new. Its admission is written last.

    Args:
        workspace: it is prepared.
        admission: of the report.
        data: the report's bytes.
        host: the plugins at hand, which the package names.
        wait: for another process that admits the same report at this moment.

    Raises:
        SettingsError: `REPORT_DUPLICATE`: the package is that of another report.
        UnavailableError: `WORKSPACE_WRITE`, `CASE_BUSY`.
        IntegrityError: what stands there does not hold.
    """
    package = workspace.package(admission.package_id)
    if _is_known(package, admission):
        return package, False
    workspace.admit(package)
    with exclusive(package, wait=wait):
        if _is_known(package, admission):  # another process was faster
            return package, False
        if not package.exists(layout.PACKAGE):
            package.create_artifact(layout.PACKAGE, _identity(admission, host))
        package.create(layout.source(admission.file), data)
        package.create_artifact(layout.ADMISSION, admission)
    return package, True


def _is_known(package: Package, admission: Admission) -> bool:
    known = package.load_if(layout.ADMISSION, Admission) if package.exists(layout.ADMISSION) else None
    return known is not None and check_duplicate(admission, [known]) is not None


def _identity(admission: Admission, host: Host) -> PackageIdentity:
    return PackageIdentity(
        package_id=admission.package_id,
        case_id=admission.case_id,
        casebound=__version__,
        distributions=tuple(
            Distribution(name=plugin.distribution, version=plugin.version)
            for plugin in host.plugins
            if plugin.distribution != "casebound" and plugin.error is None
        ),
    )
