"""Which cases a run may take: those that were asked for, as far as it is to go."""

from __future__ import annotations

from dataclasses import dataclass

from casebound.offers import CORE_PHASES

# In the order of the way. A state stands behind the phase that led to it.
_LEFT_BEFORE: dict[str, tuple[str, ...]] = {
    "admission": (),
    "construction": ("new", "admitted"),
    "research": ("new", "admitted", "built"),
    "interpretation": ("new", "admitted", "built", "researched", "planned", "looked_up", "assessed"),
}


@dataclass(frozen=True, slots=True)
class Selection:
    """What a run takes.

    Attributes:
        case_ids, package_ids: those cases only; both empty: every case.
        stop_after: the phase behind which a case stays as it is, None: as far as it goes.
        resumes: instead of what goes on by itself, the blocked cases whose time has come.
    """

    case_ids: tuple[str, ...] = ()
    package_ids: tuple[str, ...] = ()
    stop_after: str | None = None
    resumes: bool = False

    @property
    def states(self) -> tuple[str, ...]:
        """The states in which something is left to do; `interpreted` where phases of plugins may be."""
        if self.resumes:
            return ("blocked",)
        if self.stop_after in CORE_PHASES:
            return _LEFT_BEFORE[self.stop_after]
        return (*_LEFT_BEFORE["interpretation"], "interpreted")

    @property
    def retries(self) -> bool:
        """Whether a case goes on that waits to ask a model again."""
        return self.stop_after not in ("admission", "construction", "research")
