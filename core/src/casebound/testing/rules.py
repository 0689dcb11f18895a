"""Trying rules: what each of a protocol's rules says about a reply, directly and as `judge` applies them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from casebound.canonical import canonical_bytes
from casebound.contracts.findings import Finding
from casebound.contracts.model_call import ModelReply
from casebound.host import build_host
from casebound.llm.judge import judge
from casebound.specs import PromptProtocol, Validator

Said = list[tuple[str, str]]


@cache
def rules_of(protocol: PromptProtocol) -> tuple[Validator, ...]:
    """Return the built-in rules that a protocol names; a host is built for them once a process."""
    return build_host(entry_points=()).validators_of(protocol.stage, protocol.rules)


def message_of_context(protocol: PromptProtocol, context: Mapping[str, object]) -> dict[str, Any]:
    """Return the user message that a model would see, parsed."""
    message: dict[str, Any] = json.loads(canonical_bytes(protocol.request(context, None).user))
    return message


def findings_of_rules(
    protocol: PromptProtocol, reply: Mapping[str, object], context: Mapping[str, object]
) -> list[Finding]:
    """Return what the rules find, without the schema before them."""
    return [finding for rule in rules_of(protocol) for finding in rule.check(reply, context)]


def findings_of_judge(
    protocol: PromptProtocol, reply: Mapping[str, object], context: Mapping[str, object]
) -> Sequence[Finding]:
    """Return what `judge` finds: the schema first, the rules only where it holds."""
    text = canonical_bytes(reply).decode()
    said = ModelReply(text=text, finish_reason="stop")
    return judge(said, protocol.response_schema(context), rules_of(protocol), context).findings


def said(findings: Sequence[Finding]) -> Said:
    """Return code and place of each finding, each once, sorted."""
    return sorted({(finding.code, finding.path) for finding in findings})
