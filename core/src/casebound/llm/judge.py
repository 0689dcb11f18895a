"""Judging a reply: strict JSON, then the schema, then the meaning. Pure, so that `verify` does exactly the same.

Findings go into a file and into the next request, which is paid for; so however much a reply says, what is found in it
stays small: neither the number of findings nor anything in one grows with the reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from casebound.canonical import canonical_bytes
from casebound.contracts.findings import Finding
from casebound.contracts.model_call import ModelReply
from casebound.guard import checked, plugin_guard
from casebound.llm.quick_schema import fits
from casebound.pointer import json_pointer
from casebound.specs import Validator
from casebound.strict_json import JsonError, parse_json

MOST_SCHEMA_ERRORS = 20
MOST_SCHEMA_ERRORS_READ = 1000
MOST_FINDINGS = 50
MOST_FINDINGS_BYTES = 24 << 10  # of all findings of a reply; the first one is kept whatever it has
_MOST_CHARACTERS = 500  # of a text in a finding
_MOST_LISTED = 100  # entries of a list in a finding


class Verdict:
    """What became of a reply.

    Attributes:
        value: the parsed reply where it holds, else None.
        findings: everything that does not hold; empty where `value` is given.
    """

    def __init__(self, value: dict[str, object] | None, findings: Sequence[Finding]) -> None:
        self.value = value
        self.findings = _bounded(findings)


def judge(
    reply: ModelReply, schema: Mapping[str, object], rules: Sequence[Validator], context: Mapping[str, object]
) -> Verdict:
    """Return the verdict on `reply`; each level is reached only where the one before holds.

    Raises:
        PluginError: a rule itself failed (`PLUGIN_BROKEN`); that is no failure of the model.
    """
    cut = _unusable(reply)
    if cut is not None:
        return Verdict(None, [cut])
    try:
        value = parse_json(reply.text.encode())
    except JsonError as exc:
        return Verdict(None, [Finding(code="LLM_OUTPUT_JSON", path=exc.pointer, message=_clause(exc))])
    except UnicodeEncodeError:
        return Verdict(None, [Finding(code="LLM_OUTPUT_JSON", path="", message="a lone surrogate")])
    findings = _schema_findings(value, schema)
    if not findings:
        findings = [finding for rule in rules for finding in _apply(rule, value, context)]
    return Verdict(None if findings else value, findings)


def _bounded(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the first findings, shortened; the last one's message says how many are left out."""
    kept: list[Finding] = []
    size = 0
    for finding in map(_shortened, findings[:MOST_FINDINGS]):
        size += len(canonical_bytes(finding.to_json()))
        if kept and size > MOST_FINDINGS_BYTES:
            break
        kept.append(finding)
    if len(kept) < len(findings):
        message = f"{kept[-1].message} (and {len(findings) - len(kept)} more findings)"
        kept[-1] = kept[-1].model_copy(update={"message": message})
    return tuple(kept)


def _shortened(finding: Finding) -> Finding:
    facts = {"path": finding.path, "message": finding.message, "details": finding.details}
    allowed = tuple(_short(list(finding.allowed)))
    short = finding.model_copy(update={name: _short(fact) for name, fact in facts.items()} | {"allowed": allowed})
    return finding if short == finding else short


def _short(value: Any) -> Any:  # any JSON value
    """Return `value` with every long text and list in it cut; the place of a cut says how much is missing."""
    if isinstance(value, str):
        left = len(value) - _MOST_CHARACTERS
        return value if left <= 0 else f"{value[:_MOST_CHARACTERS]}… and {left} more characters"
    if isinstance(value, dict):
        return {_short(key): _short(value[key]) for key in islice(value, _MOST_LISTED)}
    if isinstance(value, list | tuple):
        left = len(value) - _MOST_LISTED
        return [*map(_short, value[:_MOST_LISTED]), *([f"… and {left} more"] if left > 0 else [])]
    return value


def _clause(error: JsonError) -> str:
    return f"{error.reason}, {error.where}" if error.where else error.reason


def _unusable(reply: ModelReply) -> Finding | None:
    if reply.finish_reason == "refusal":
        return Finding(code="LLM_REFUSED", path="", message="the model refused to answer")
    if reply.finish_reason == "length":
        return Finding(
            code="LLM_INCOMPLETE_OUTPUT", path="", message="the reply was cut off before its end; answer more briefly"
        )
    if reply.tools or reply.finish_reason == "tool_calls":
        return Finding(code="LLM_OUTPUT_JSON", path="", message="a tool was asked for, but there is none")
    if not reply.text.strip():
        return Finding(code="LLM_OUTPUT_JSON", path="", message="the reply is empty")
    return None


def _apply(rule: Validator, value: Mapping[str, object], context: Mapping[str, object]) -> Sequence[Finding]:
    where = f"validator {rule.code}/{rule.revision}"
    with plugin_guard(where):  # what goes wrong in a plugin's rule must not count as the model's failure
        return [checked(finding, Finding, where) for finding in rule.check(value, context)]


@cache
def _validator_class() -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    # 1.0 is no integer here: a canonical artifact holds no float.
    checker = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    return extend(Draft202012Validator, type_checker=checker)  # type: ignore[no-untyped-call]  # as its stubs leave it


def _schema_findings(value: object, schema: Mapping[str, object]) -> list[Finding]:
    if fits(value, schema):
        return []
    # One at a time: an error holds those of every alternative, and a reply of megabytes has as many as it has items.
    errors = map(_deepest, islice(_validator_class()(schema).iter_errors(value), MOST_SCHEMA_ERRORS_READ))
    found = [(json_pointer(error.absolute_path), str(error.validator), _schema_finding(error)) for error in errors]
    found.sort(key=lambda item: item[:2])
    return [finding for _, _, finding in found[:MOST_SCHEMA_ERRORS]]


def _schema_finding(error: Any) -> Finding:
    return Finding(
        code="LLM_OUTPUT_SCHEMA",
        path=json_pointer(error.absolute_path),
        message=_sentence(error),
        allowed=_accepted(error),
    )


def _deepest(error: Any) -> Any:
    """Return the error of the alternative that fits best: whose constants hold, then the one that got furthest."""
    while error.validator in ("anyOf", "allOf") and error.context:
        branches: dict[int, list[Any]] = {}
        for inner in error.context:
            branches.setdefault(inner.schema_path[0], []).append(inner)
        error = min(
            branches.values(), key=lambda inner: (any(e.validator in ("const", "type") for e in inner), len(inner))
        )[0]
    return error


def _sentence(error: Any) -> str:
    """Return one clause about the schema error; never the value itself, which may be long."""
    rule, expected = error.validator, error.validator_value
    if rule == "required":
        return f"keys are missing: {', '.join(key for key in expected if key not in error.instance)}"
    if rule == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = sorted(key for key in error.instance if key not in known)
        return f"keys that the schema does not know: {', '.join(unknown)}"
    sentences = {
        "type": f"it is not of type {expected}",
        "enum": "it is none of the permitted values",
        "const": "it is not the permitted value",
        "contains": "it lacks a required entry",
        "minItems": f"it has fewer than {expected} entries",
        "maxItems": f"it has more than {expected} entries",
        "minLength": "it is too short",
        "pattern": f"it does not match {expected}",
        "anyOf": "it fits none of the alternatives",
    }
    return sentences.get(rule, f"it does not satisfy {rule}")


def _accepted(error: Any) -> tuple[str, ...]:
    schema = error.validator_value if error.validator == "contains" else error.schema
    values = [schema["const"]] if "const" in schema else schema.get("enum", [])
    return tuple(str(value) for value in values) if error.validator in ("const", "enum", "contains") else ()
