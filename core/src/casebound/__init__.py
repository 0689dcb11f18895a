"""casebound: which rows of your own tables is this report about, and what exactly says so?

Importing this package costs next to nothing: every public name is loaded on first use (PEP 562).
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing it from `typing` would double the time that `casebound --version` takes
if TYPE_CHECKING:
    from casebound.api import (
        explain,
        import_reports,
        record,
        rehearse,
        resolve,
        resume,
        resume_due,
        revise,
        show,
        status,
        verify,
    )
    from casebound.errors import CaseboundError
    from casebound.hookspecs import hookimpl
    from casebound.runs import run

__version__ = "0.1.0"

_HOMES = {
    "CaseboundError": "casebound.errors",
    "explain": "casebound.api",
    "hookimpl": "casebound.hookspecs",
    "import_reports": "casebound.api",
    "record": "casebound.api",
    "rehearse": "casebound.api",
    "resolve": "casebound.api",
    "resume": "casebound.api",
    "resume_due": "casebound.api",
    "revise": "casebound.api",
    "run": "casebound.runs",
    "show": "casebound.api",
    "status": "casebound.api",
    "verify": "casebound.api",
}

__all__ = [
    "CaseboundError",
    "__version__",
    "explain",
    "hookimpl",
    "import_reports",
    "record",
    "rehearse",
    "resolve",
    "resume",
    "resume_due",
    "revise",
    "run",
    "show",
    "status",
    "verify",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'casebound' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)
