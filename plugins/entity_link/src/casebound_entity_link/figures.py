"""What a workspace's links come to, as counts. Each group has its own whole, and none is a score of another.

These are observations of production: how many links a workspace holds says nothing about how good suggestions are, and
no group is the benchmark's. What people accept is a decision about their library; it is no reviewed quality.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

from casebound.contracts.model_call import Outcome

from casebound_entity_link.link import SEMANTIC_REVIEW, Link

Admission = Literal["admitted", "parse_failures", "schema_rejections", "binding_rejections"]

STATES = ("suggested", "proposed", "retry_pending", "blocked", "review")
ENDINGS = ("answered", "provider_errors", "unknown", "undecided")
ADMISSIONS: tuple[Admission, ...] = ("admitted", "parse_failures", "schema_rejections", "binding_rejections")
VERDICTS = ("accepted", "rejected", "undecided")

_PARSE = ("LLM_OUTPUT_JSON", "LLM_INCOMPLETE_OUTPUT", "LLM_REFUSED")
_ENDINGS = {"accepted": "answered", "invalid": "answered", "provider_error": "provider_errors", "unknown": "unknown"}


def derive_figures(links: Iterable[Link]) -> dict[str, Any]:
    """Return the counts of all links.

    Returns:
        `reviews` over `links`; `invocations` over `calls`; `admissions` over `outputs`, the calls that were answered;
        `decisions` over `suggestions`, where `superseded` counts decisions that a later one replaced, beside the whole.
    """
    reviews: Counter[str] = Counter()
    invocations: Counter[str] = Counter()
    admissions: Counter[str] = Counter()
    decisions: Counter[str] = Counter()
    superseded = 0
    for link in links:
        reviews[link.state] += 1
        for attempt in link.attempts():
            outcome = attempt.outcome
            invocations[_ENDINGS[outcome.kind] if outcome else "undecided"] += 1
            if outcome and outcome.kind in ("accepted", "invalid"):
                admissions[admission_of(outcome)] += 1
        if link.suggestion is not None:
            made = link.decisions()
            decisions[made[-1].decision if made else "undecided"] += 1
            superseded += max(0, len(made) - 1)
    return {
        "reviews": _group("links", reviews, STATES),
        "invocations": _group("calls", invocations, ENDINGS),
        "admissions": _group("outputs", admissions, ADMISSIONS),
        "decisions": {**_group("suggestions", decisions, VERDICTS), "superseded": superseded},
        "semantic_review": SEMANTIC_REVIEW,
    }


def admission_of(outcome: Outcome) -> Admission:
    """Return at which layer a reply ended; each is reached only where the one before holds."""
    if outcome.kind == "accepted":
        return "admitted"
    if outcome.code in _PARSE:
        return "parse_failures"
    return "schema_rejections" if outcome.code == "LLM_OUTPUT_SCHEMA" else "binding_rejections"


def _group(whole: str, counts: Counter[str], names: Iterable[str]) -> dict[str, int]:
    return {whole: counts.total(), **{name: counts[name] for name in names}}
