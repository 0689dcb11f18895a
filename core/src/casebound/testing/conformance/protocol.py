"""The suite that every version of a prompt protocol passes, ours and yours.

Subclass `ProtocolConformance`, name the class `Test…`, and say where the version is:

    class TestPlan1000(ProtocolConformance):
        where = "my_plugin.plan_v1000:PROTOCOL"

The inputs are small cases of an inventory (`casebound.testing.inventory_cases`); a stage of your own brings its own, by
overriding `situations` and `facts`; what it takes in the place of the artifacts is JSON data.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import pytest

from casebound.canonical import canonical_bytes, digest_of
from casebound.contracts.findings import Finding
from casebound.contracts.stage_facts import StageFacts
from casebound.errors import CODES
from casebound.host import Host, build_host
from casebound.specs import CORE_STAGES, PromptProtocol
from casebound.testing.inventory_cases import SITUATIONS, facts_from_json, facts_of, facts_to_json

HOSTILE = "hostile"
_PROGRAM = (
    "import sys, json; from casebound.testing.conformance.protocol import digest_of_requests; "
    "print(digest_of_requests(sys.argv[1], json.load(sys.stdin)))"
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a version does not do, and for which the suite then skips visibly.

    Attributes:
        shows_schema: the user message holds `output_schema`.
        tells_all_errors: the feedback names code and place of every finding.
    """

    shows_schema: bool = True
    tells_all_errors: bool = True


def find_protocol(where: str) -> PromptProtocol:
    """Return the protocol that `package.module:ATTRIBUTE` names."""
    module, _, attribute = where.partition(":")
    protocol: PromptProtocol = getattr(import_module(module), attribute)
    return protocol


def digest_of_requests(where: str, inputs: Sequence[Mapping[str, Any]]) -> str:
    """Return one digest over everything that a protocol makes of `inputs` (see `facts_to_json`)."""
    protocol = find_protocol(where)
    made: list[object] = []
    for data in inputs:
        context = protocol.context(facts_from_json(data) if protocol.stage in CORE_STAGES else data)
        feedback = protocol.feedback(_findings(protocol), context)
        for said in (None, feedback):
            prompt = protocol.request(context, said)
            made += [context, prompt.system, prompt.user, protocol.response_schema(context)]
    return digest_of(canonical_bytes(made))


def _findings(protocol: PromptProtocol) -> list[Finding]:
    codes = ["LLM_OUTPUT_JSON", "LLM_INCOMPLETE_OUTPUT", *(rule.code for rule in protocol.rules)]
    return [
        Finding(code=code, path=f"/items/{place}", message="m", allowed=("S0001",), details={"capture": "V0001"})
        for place, code in enumerate(codes)
    ]


class ProtocolConformance:
    """What is promised in `casebound.specs.PromptProtocol`, test by test."""

    where: ClassVar[str]
    capabilities: ClassVar[Capabilities] = Capabilities()
    situations: ClassVar[Sequence[str]] = ("selected", "empty", "ambiguous", "unnamed", "locales", HOSTILE)

    # --- what the author may supply ---------------------------------------------------------------------------------

    @pytest.fixture
    def protocol(self) -> PromptProtocol:
        """The version under test."""
        return find_protocol(self.where)

    @pytest.fixture
    def host(self) -> Host:
        """A host that knows the rules of the version; override it where a plugin of yours offers them."""
        return build_host(entry_points=())

    @pytest.fixture
    def facts(self) -> Mapping[str, StageFacts]:
        """The artifacts of each situation."""
        return {name: facts_of(name) for name in self.situations}

    # --- what it is -------------------------------------------------------------------------------------------------

    def test_it_is_numbered_and_named(self, protocol: PromptProtocol) -> None:
        """A case freezes stage, number and prompt id. Repair: fill them in; a change is a new number."""
        assert protocol.stage
        assert protocol.version >= 0
        assert protocol.prompt_id

    def test_its_rules_are_offered_and_their_codes_registered(self, protocol: PromptProtocol, host: Host) -> None:
        """A frozen rule is found again through the host. Repair: offer it, and add a row to the table of codes."""
        assert len(host.validators_of(protocol.stage, protocol.rules)) == len(protocol.rules)
        assert {rule.code for rule in protocol.rules} <= CODES.keys()

    # --- what it makes ----------------------------------------------------------------------------------------------

    def test_a_context_and_a_message_have_canonical_json(
        self, protocol: PromptProtocol, facts: Mapping[str, StageFacts]
    ) -> None:
        """Both are kept and sent as bytes. Repair: no floats, no sets, no large integers."""
        for given in facts.values():
            context = protocol.context(given)
            assert json.loads(canonical_bytes(context)) == json.loads(canonical_bytes(protocol.context(given)))
            message = json.loads(canonical_bytes(protocol.request(context, None).user))
            assert message["task"] == protocol.stage

    def test_a_context_read_back_makes_the_same_message(
        self, protocol: PromptProtocol, facts: Mapping[str, StageFacts]
    ) -> None:
        """A resumed case asks from the file. Repair: depend on values, never on tuples, order of keys or identity."""
        for given in facts.values():
            context = protocol.context(given)
            again = json.loads(canonical_bytes(context))
            assert canonical_bytes(protocol.request(again, None).user) == canonical_bytes(
                protocol.request(context, None).user
            )
            assert protocol.response_schema(again) == protocol.response_schema(context)

    def test_nothing_that_is_given_is_changed(self, protocol: PromptProtocol, facts: Mapping[str, StageFacts]) -> None:
        """Functions are pure. Repair: build new dictionaries."""
        for given in facts.values():
            context = protocol.context(given)
            before = copy.deepcopy(context)
            feedback = protocol.feedback(_findings(protocol), context)
            kept = copy.deepcopy(feedback)
            protocol.request(context, feedback)
            protocol.response_schema(context)
            assert (context, feedback) == (before, kept)

    def test_the_system_text_holds_no_word_of_a_report(
        self, protocol: PromptProtocol, facts: Mapping[str, StageFacts]
    ) -> None:
        """Text that somebody else wrote stays in the user message. Repair: make the system text a constant."""
        texts = {protocol.request(protocol.context(given), None).system for given in facts.values()}
        assert len(texts) == 1

    def test_quoted_text_cannot_leave_its_place(
        self, protocol: PromptProtocol, facts: Mapping[str, StageFacts]
    ) -> None:
        """A report that writes JSON adds no key. Repair: never build a message out of strings."""
        if HOSTILE not in facts:
            pytest.skip("capability: no hostile report among the situations")
        message = protocol.request(protocol.context(facts[HOSTILE]), None).user
        clean = protocol.request(protocol.context(facts["selected"]), None).user
        assert json.loads(canonical_bytes(message)).keys() == clean.keys()
        assert message["task"] == protocol.stage

    def test_the_schema_is_a_closed_object_and_stands_in_the_message(
        self, protocol: PromptProtocol, facts: Mapping[str, StageFacts]
    ) -> None:
        """No reply may hold a key that nobody asked for. Repair: `additionalProperties: false`, all keys required."""
        from jsonschema import Draft202012Validator

        for given in facts.values():
            context = protocol.context(given)
            schema = protocol.response_schema(context)
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            for part in _objects(schema):
                assert part["additionalProperties"] is False
                assert part["required"] == list(part["properties"])
            if self.capabilities.shows_schema:
                assert protocol.request(context, None).user["output_schema"] == schema

    def test_feedback_is_all_that_a_correction_adds(
        self, protocol: PromptProtocol, facts: Mapping[str, StageFacts]
    ) -> None:
        """The task stays the same. Repair: put feedback under its own key and change nothing else."""
        for given in facts.values():
            context = protocol.context(given)
            feedback = protocol.feedback(_findings(protocol), context)
            asked, again = protocol.request(context, None), protocol.request(context, feedback)
            assert again.user == {**asked.user, "feedback": feedback}
            assert again.system == asked.system

    def test_feedback_names_code_and_place_of_every_error(
        self, protocol: PromptProtocol, facts: Mapping[str, StageFacts]
    ) -> None:
        """A model that is told one error at a time needs a call for each. Repair: list all of them."""
        if not self.capabilities.tells_all_errors:
            pytest.skip("capability: this version tells some errors only")
        for given in facts.values():
            text = canonical_bytes(protocol.feedback(_findings(protocol), protocol.context(given))).decode()
            for finding in _findings(protocol):
                assert finding.code in text
                assert f'"{finding.path}"' in text

    def test_it_is_the_same_in_every_process(self, facts: Mapping[str, StageFacts]) -> None:
        """Hash seed, locale, time zone and folder make no difference. Repair: sort sets; read no clock, no variable."""
        plain = [facts_to_json(given) if isinstance(given, StageFacts) else given for given in facts.values()]
        inputs = canonical_bytes(plain)
        digests = {digest_of_requests(self.where, json.loads(inputs))}
        for seed, locale, zone in (("0", "C", "UTC"), ("4711", "tr_TR.UTF-8", "Pacific/Kiritimati")):
            variables = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": zone}
            variables["PYTHONPATH"] = os.pathsep.join(sys.path)
            ran = subprocess.run(  # noqa: S603  # this interpreter
                [sys.executable, "-c", _PROGRAM, self.where],
                input=inputs,
                env=variables,
                capture_output=True,
                check=True,
                cwd=os.sep,
            )
            digests.add(ran.stdout.decode().strip())
        assert len(digests) == 1


def _objects(schema: object) -> Iterator[dict[str, Any]]:
    """Yield every part of a schema that describes an object."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
            yield schema
        for value in schema.values():
            yield from _objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _objects(value)


__all__ = ["SITUATIONS", "Capabilities", "ProtocolConformance"]
