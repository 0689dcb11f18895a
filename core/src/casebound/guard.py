"""The border to a plugin's code: whatever it ends with becomes one error that names it.

A plugin may raise anything, recurse without end, or call exit; none of that may end another case, stand as a bug of
ours, or choose the exit status of a command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from casebound.errors import CaseboundError, PluginError

P = ParamSpec("P")
T = TypeVar("T")


class plugin_guard:  # noqa: N801  # it reads as what it is used as; a generator would cost four times as much
    """Run a plugin's code in the block; `where` says which.

    Raises:
        PluginError: `PLUGIN_BROKEN`, with the type of what it raised; its text may hold a secret.
        CaseboundError: what the plugin raised on purpose.
    """

    __slots__ = ("_path", "_where")

    def __init__(self, where: str, *, path: str | None = None) -> None:
        self._where = where
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, raised: BaseException | None, traceback: object) -> None:
        if isinstance(raised, Exception | SystemExit) and not isinstance(raised, CaseboundError):
            found = type(raised).__name__
            raise PluginError("PLUGIN_BROKEN", where=self._where, found=found, path=self._path) from raised


def guarded(function: Callable[P, T], returns: type[T], where: str) -> Callable[P, T]:
    """Return `function` of a plugin behind its border; what it returns must be a `returns`.

    Raises (when called):
        PluginError: `PLUGIN_BROKEN`; `PLUGIN_OFFER` where it returns something else.
    """

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with plugin_guard(where):
            return checked(function(*args, **kwargs), returns, where)

    return call


def checked(value: object, expected: type[T], where: str) -> T:
    """Return what a plugin returned. Raises `PluginError` (`PLUGIN_OFFER`) where it is no `expected`."""
    if not isinstance(value, expected):
        found = f"a {type(value).__name__}"
        raise PluginError("PLUGIN_OFFER", where=where, found=found, expected=f"a {expected.__name__}")
    return value
