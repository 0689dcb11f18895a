"""What a model is asked for a case: made from the case's input alone, by the protocol that is measured.

Reference, rationale, checks, split, groups and limitations cannot reach a request: nothing here is ever given them.
"""

from __future__ import annotations

from casebound.contracts.benchmark import CaseInput
from casebound.contracts.model_call import Prompt
from casebound.host import Host
from casebound.specs import Benchmark, PromptProtocol


def measured_protocol(benchmark: Benchmark, host: Host) -> PromptProtocol:
    """Return the protocol that a benchmark measures. Raises `SettingsError` where nobody offers it."""
    protocol: PromptProtocol = host.need("protocols", (benchmark.stage, benchmark.protocol_version))
    return protocol


def context_of(given: CaseInput, protocol: PromptProtocol) -> dict[str, object]:
    """Return the context that the protocol makes of an input: what a reply is judged against, too."""
    return protocol.context(given.to_json())


def prompt_of(given: CaseInput, protocol: PromptProtocol) -> Prompt:
    """Return the first request for an input: a benchmark asks once and corrects nothing."""
    return protocol.request(context_of(given, protocol), None)


def response_schema_of(given: CaseInput, protocol: PromptProtocol) -> dict[str, object]:
    """Return the JSON Schema that a reply to this input must fit."""
    return protocol.response_schema(context_of(given, protocol))
