"""The suite that every semantic rule passes, ours and yours.

Subclass `ValidatorConformance`, name the class `Test…`, and supply three fixtures:

    class TestMyRule(ValidatorConformance):
        @pytest.fixture
        def validator(self):
            return my_plugin.RULE

        @pytest.fixture
        def holding(self):
            return [Judged(reply, context), …]     # replies that it has nothing against

        @pytest.fixture
        def breaking(self):
            return [Judged(reply, context, "/searches/0/term"), …]     # and where it finds fault with them
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from casebound.canonical import canonical_bytes
from casebound.contracts.findings import Finding
from casebound.errors import CODES
from casebound.pointer import resolve_pointer
from casebound.specs import Validator


@dataclass(frozen=True, slots=True)
class Judged:
    """A reply that fits the schema, the context that it answers, and the place of its fault, None where it has none."""

    reply: Mapping[str, Any]
    context: Mapping[str, Any]
    path: str | None = None


class ValidatorConformance:
    """What is promised in `casebound.specs.Validator`, test by test."""

    # --- what the author supplies -----------------------------------------------------------------------------------

    @pytest.fixture
    def validator(self) -> Validator:
        """Supply: the rule."""
        raise NotImplementedError("override the fixture `validator`")

    @pytest.fixture
    def holding(self) -> Sequence[Judged]:
        """Supply: replies that the rule has nothing against."""
        raise NotImplementedError("override the fixture `holding`")

    @pytest.fixture
    def breaking(self) -> Sequence[Judged]:
        """Supply: replies that it refuses, each with the place."""
        raise NotImplementedError("override the fixture `breaking`")

    # --- what it does -----------------------------------------------------------------------------------------------

    def test_it_is_named_by_a_code_and_a_revision(self, validator: Validator) -> None:
        """A case freezes both. Repair: add a row to the table of codes; count revisions from 1."""
        assert validator.code in CODES
        assert validator.revision >= 1

    def test_it_is_silent_where_a_reply_holds(self, validator: Validator, holding: Sequence[Judged]) -> None:
        """Silence is acceptance. Repair: return an empty list."""
        assert holding
        for case in holding:
            assert list(validator.check(case.reply, case.context)) == []

    def test_it_names_its_code_and_the_place(self, validator: Validator, breaking: Sequence[Judged]) -> None:
        """Feedback points at the fault. Repair: report only your own code, with a JSON pointer into the reply."""
        assert breaking
        for case in breaking:
            findings = validator.check(case.reply, case.context)
            assert {finding.code for finding in findings} == {validator.code}
            assert case.path in {finding.path for finding in findings}
            for finding in findings:
                resolve_pointer(case.reply, finding.path)

    def test_its_findings_can_be_kept(self, validator: Validator, breaking: Sequence[Judged]) -> None:
        """Outcome and feedback are files. Repair: no floats, no sets and nothing of your own in `details`."""
        for case in breaking:
            for finding in validator.check(case.reply, case.context):
                assert Finding.model_validate_json(canonical_bytes(finding.to_json())) == finding
                assert finding.message

    def test_it_is_pure(self, validator: Validator, holding: Sequence[Judged], breaking: Sequence[Judged]) -> None:
        """`verify` asks it again. Repair: change nothing, remember nothing, depend on values only."""
        for case in (*holding, *breaking):
            reply, context = copy.deepcopy(case.reply), copy.deepcopy(case.context)
            first = list(validator.check(case.reply, case.context))
            assert (case.reply, case.context) == (reply, context)
            read_back = [json.loads(canonical_bytes(value)) for value in (case.reply, case.context)]
            assert list(validator.check(*read_back)) == first
