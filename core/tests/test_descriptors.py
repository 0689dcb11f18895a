"""How many files a run may have open, where the system permits only so many."""

from __future__ import annotations

import resource

import pytest
from casebound.descriptors import A_CASE, ALL, make_room
from casebound.errors import SettingsError
from casebound.testing.faults import run_in_child


def refusal(hard: int, cases: int) -> str:
    """Return what is said where the system permits `hard` open files; this process is limited for ever."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(16, hard), hard))
    with pytest.raises(SettingsError) as refused:
        make_room(cases)
    return str(refused.value)


def test_a_system_with_too_few_files_for_one_case_is_not_told_that_one_is_accepted() -> None:
    def look() -> int:
        said = refusal(ALL, 1)
        return int(f"expected: {ALL + A_CASE} open files" not in said or "at most" in said)

    assert run_in_child(look) == 0


def test_the_most_that_is_named_is_accepted() -> None:
    def look() -> int:
        most = 3
        said = refusal(ALL + most * A_CASE, most + 1)
        make_room(most)
        return int(f"expected: {most} at most" not in said)

    assert run_in_child(look) == 0
