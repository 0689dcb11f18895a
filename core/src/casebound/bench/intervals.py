"""Exact binomial intervals (Clopper and Pearson): which true rates a count does not contradict.

The library is optional (`pip install 'casebound[intervals]'`): its arithmetic carries proven error bounds, so that a
limit is exact to the places shown. Without it a rate stands alone, and the report says so.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec

_PLACES = 4
_UNITS = 10_000


def can_compute() -> bool:
    """Tell whether the library is installed."""
    return find_spec("flint") is not None


@lru_cache(maxsize=4096)
def exact_interval(part: int, whole: int) -> tuple[str, str] | None:
    """Return lower and upper limit as decimals with four places, rounded outwards; None: nothing to count, no library.

    Args:
        part: how many of `whole` had the property.
        whole: independent trials.
    """
    if not whole or not can_compute():
        return None
    # The lower limit is the mirror image of the upper limit of the opposite count.
    upper = _upper_limit(part, whole)
    lower = _UNITS - _upper_limit(whole - part, whole)
    return _decimal(lower), _decimal(upper)


def _upper_limit(part: int, whole: int) -> int:
    """Return the smallest p, in units of the last place, under which `part` or fewer is at most 2.5 % likely; or 1."""
    from flint import arb, fmpq  # heavy, and optional

    tail = fmpq(1, 40)
    low, high = 0, _UNITS
    while part < whole and high - low > 1:
        middle = (low + high) // 2
        # I_p(part + 1, whole - part) is the chance of more than `part`.
        more = arb(fmpq(middle, _UNITS)).beta_lower(part + 1, whole - part, regularized=True)
        if 1 - more <= arb(tail):
            high = middle
        else:
            low = middle
    return high


def _decimal(units: int) -> str:
    whole, rest = divmod(units, _UNITS)
    return f"{whole}.{rest:0{_PLACES}d}"
