"""Open files: a case that is under way keeps its folders open, so many at once need more than most systems give."""

from __future__ import annotations

from casebound.errors import SettingsError

try:
    import resource
except ImportError:  # not on Windows, where no such limit is near
    resource = None  # type: ignore[assignment]

A_CASE = 48  # folders of a package with many attempts, a file, and the connection to its model server
ALL = 128  # what the process needs besides


def make_room(cases: int) -> None:
    """Permit this process as many open files as so many cases at once need.

    Raises:
        SettingsError: `SETTINGS_VALUE`, where the system does not permit that many.
    """
    if resource is None:
        return
    needed = ALL + cases * A_CASE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        most = (hard - ALL) // A_CASE
        raise SettingsError(
            "SETTINGS_VALUE",
            pointer="--jobs, or limits.in_flight",
            found=f"{cases} cases at once, which may need {needed} open files; this system permits {hard}",
            expected=f"{most} at most" if most > 0 else f"{ALL + A_CASE} open files, for one case",
            hint="ask for fewer at once, or raise the limit (`ulimit -Hn`)" if most > 0 else "raise it (`ulimit -Hn`)",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
