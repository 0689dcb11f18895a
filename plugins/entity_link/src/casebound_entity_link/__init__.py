"""Entity links: whether two entities of two cases are one object, as a suggestion that a person decides about."""

from __future__ import annotations

from casebound.hookspecs import hookimpl
from casebound.specs import Command, PromptProtocol, RuleSet, Validator

from casebound_entity_link.codes import register

register()


@hookimpl
def casebound_protocols() -> list[PromptProtocol]:
    """Offer the versions of stage `entity_link`."""
    from casebound_entity_link.protocol_v1 import PROTOCOL

    return [PROTOCOL]


@hookimpl
def casebound_validators() -> list[Validator]:
    """Offer the rules of the binding: which entities and mentions a suggestion may name."""
    from casebound_entity_link.rules import RULES

    return list(RULES)


@hookimpl
def casebound_rules() -> list[RuleSet]:
    """Offer answers for stage `entity_link`, so that a provider without a model can answer it."""
    return [RuleSet("entity_link", answer=f"{__name__}.answer:answer")]


@hookimpl
def casebound_commands() -> list[Command]:
    """Offer `casebound link`."""
    return [Command("link", "Entity links: propose, list, show, decide, status, verify.", group=f"{__name__}.cli:link")]
