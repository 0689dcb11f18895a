"""From a frozen name to the thing itself: protocols and rules exactly as a case froze them, through the host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from casebound.contracts.interpretation import StagePolicy
from casebound.contracts.model_call import Prompt
from casebound.contracts.plan import FrozenProtocol, FrozenRule, Offered
from casebound.errors import PluginError
from casebound.guard import guarded
from casebound.host import Host
from casebound.specs import PromptProtocol, RuleRef, Validator


def offered(host: Host, kind: str, name: object) -> Offered:
    """Return who offers a thing, as frozen inputs write it."""
    owner = host.distribution_of(kind, name)
    return Offered(distribution=owner.distribution, version=owner.version)


def freeze_protocol(host: Host, protocol: PromptProtocol) -> FrozenProtocol:
    """Return the frozen name of a protocol."""
    return FrozenProtocol(
        stage=protocol.stage,
        version=protocol.version,
        prompt_id=protocol.prompt_id,
        offered_by=offered(host, "protocols", (protocol.stage, protocol.version)),
    )


def freeze_rules(host: Host, stage: str, rules: Sequence[RuleRef]) -> tuple[FrozenRule, ...]:
    """Return the frozen names of a stage's rules, in order."""
    return tuple(
        FrozenRule(
            code=rule.code,
            revision=rule.revision,
            offered_by=offered(host, "validators", (stage, rule.code, rule.revision)),
        )
        for rule in rules
    )


def find_protocol(host: Host, frozen: FrozenProtocol) -> PromptProtocol:
    """Return the protocol that a case froze, its functions behind the border to a plugin's code.

    Raises:
        PluginError: `PLUGIN_MISSING`, naming the distribution that offered it.
    """
    found = host.protocols.get((frozen.stage, frozen.version))
    if found is None:
        raise _missing(f"version {frozen.version} of stage {frozen.stage}", frozen.offered_by)
    where = f"protocol {frozen.version} of stage {frozen.stage}"
    return replace(
        found,
        context=guarded(found.context, dict, f"{where}, context"),
        request=guarded(found.request, Prompt, f"{where}, request"),
        response_schema=guarded(found.response_schema, dict, f"{where}, response_schema"),
        feedback=guarded(found.feedback, dict, f"{where}, feedback"),
    )


def find_rules(host: Host, policy: StagePolicy) -> tuple[Validator, ...]:
    """Return exactly the rules that a case froze for a stage. Raises `PluginError` (`PLUGIN_MISSING`)."""
    for rule in policy.rules:
        if (policy.stage, rule.code, rule.revision) not in host.validators:
            raise _missing(f"the rule {rule.code}/{rule.revision} of stage {policy.stage}", rule.offered_by)
    return host.validators_of(policy.stage, _refs(policy.rules))


def _refs(rules: Iterable[FrozenRule]) -> list[RuleRef]:
    return [RuleRef(rule.code, rule.revision) for rule in rules]


def _missing(what: str, owner: Offered) -> PluginError:
    return PluginError(
        "PLUGIN_MISSING", found=f"nobody offers {what}", expected=f"{owner.distribution} {owner.version}"
    )
