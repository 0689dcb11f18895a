"""The rules that core ships, registered through the same hook as any other plugin's."""

from __future__ import annotations

from casebound.hookspecs import hookimpl
from casebound.specs import Validator


@hookimpl
def casebound_validators() -> list[Validator]:
    """Offer every built-in rule."""
    from casebound.validators import assessment, interpretation, plan

    return [*plan.VALIDATORS, *assessment.VALIDATORS, *interpretation.VALIDATORS]
