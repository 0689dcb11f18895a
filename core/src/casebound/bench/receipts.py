"""Receipts of reviews: what they must hold, and what they permit.

The rules: a receipt is of this measurement, decides every case exactly once, and is not of the future. The author's is
by a listed author. The independent one is by nobody who is listed, however the name is written; what was disputed is
resolved by somebody who is neither, or that case remains with changes requested. No argument and no setting relaxes
any of this, and nothing here makes one kind of receipt from another, from a model's answer or from a decision about a
link: a receipt comes from a file that a person filled in.

They prove that records are closed and what is attested; not who somebody is, nor that he is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, NoReturn
from unicodedata import category, normalize

from casebound.bench.parsing import parse_filled
from casebound.canonical import digest_of
from casebound.clock import format_time, parse_time
from casebound.contracts.bench_receipts import AuthorReview, Decision, IndependentReview, Readiness
from casebound.errors import SettingsError

CODE = "BENCH_RECEIPT"
AUTHOR_VERSION = "casebound-entity-author-review/v1"
INDEPENDENT_VERSION = "casebound-entity-annotation-review/v1"
_LOOK_ALIKE = str.maketrans("авекмнорстухіјѕԁԛԝһαβεζικνορτυχ", "abekmhopctyxijsdqwhabezikvoptux")


@dataclass(frozen=True, slots=True)
class ReviewScope:
    """What a receipt must be about.

    Attributes:
        measurement_id: the frozen measurement.
        case_ids: every case of its corpus.
        authors: who wrote the corpus.
    """

    measurement_id: str
    case_ids: tuple[str, ...]
    authors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt that holds: where it came from, its bytes, their digest, and what they say."""

    path: Path
    data: bytes
    digest: str
    review: AuthorReview | IndependentReview


def parse_author_review(data: bytes, path: Path, scope: ReviewScope, now: datetime) -> Receipt:
    """Return the receipt of the corpus's author. Raises `SettingsError` (`BENCH_RECEIPT`, `BENCH_FILE`)."""
    review = parse_filled(data, AuthorReview, CODE, path)
    _check_scope(review, path, scope, now)
    if person_key(review.reviewer) not in map(person_key, scope.authors):
        _refuse(path, "/reviewer", f"{review.reviewer!r}, who is no author of the corpus", scope.authors)
    return Receipt(path, data, digest_of(data), review)


def parse_independent_review(data: bytes, path: Path, scope: ReviewScope, now: datetime) -> Receipt:
    """Return the receipt of an independent person. Raises `SettingsError` (`BENCH_RECEIPT`, `BENCH_FILE`)."""
    review = parse_filled(data, IndependentReview, CODE, path)
    _check_scope(review, path, scope, now)
    check_independent(review.reviewer, scope.authors, CODE, path)
    _check_disputes(review, path, scope)
    return Receipt(path, data, digest_of(data), review)


def check_independent(
    name: str, others: Sequence[str], code: str, path: Path, pointer: str = "/reviewer", role: str = "an author"
) -> None:
    """Raise `SettingsError` where `name` is no name, or that of one of `others` (who are `role`), however written."""
    key = person_key(name)
    if not key:
        raise SettingsError(code, path=str(path), pointer=pointer, found="a name without a letter or a digit")
    for other in others:
        if key == person_key(other):
            found = f"{name!r}, which is the name of {role}: {other!r}"
            raise SettingsError(code, path=str(path), pointer=pointer, found=found, expected="somebody independent")


def person_key(name: str) -> str:
    """Return what stays the same however a name is written: in case, width, composition, accents, signs and spaces.

    Letters of Greek and Cyrillic count as the Latin ones that they look like. Two people whose names differ in nothing
    else are taken for one, since that errs on the side of refusing.
    """
    folded = normalize("NFKD", normalize("NFKD", name).casefold()).translate(_LOOK_ALIKE)
    return "".join(sign for sign in folded if category(sign)[0] in "LN" or category(sign) == "Mc")


def readiness(author: AuthorReview | None, independent: IndependentReview | None) -> Readiness:
    """Return what receipts that hold permit; one that is not there stays pending."""
    first, second = _standing(author), _standing(independent)
    blocked = "changes_requested" in (first, second)
    return Readiness(
        author_review=first,
        independent_review="attested_independent_human" if second == "approved" else second,
        exploratory_ready=first == "approved" and not blocked,
        gold_ready=first == second == "approved",
    )


def _standing(review: AuthorReview | IndependentReview | None) -> Literal["pending", "approved", "changes_requested"]:
    if review is None:
        return "pending"
    return "approved" if all(item.decision == "approved" for item in review.decisions) else "changes_requested"


def author_template(scope: ReviewScope) -> dict[str, object]:
    """Return the unsigned form of an author's receipt: every statement of the reviewer is blank."""
    return {
        "selfReviewVersion": AUTHOR_VERSION,
        "measurementId": scope.measurement_id,
        "reviewer": None,
        "reviewedAt": None,
        "reviewedBeforeOutputs": None,
        "decisions": _blank_decisions(scope),
    }


def independent_template(scope: ReviewScope) -> dict[str, object]:
    """Return the unsigned form of an independent receipt: every statement of the reviewer is blank."""
    return {
        "reviewVersion": INDEPENDENT_VERSION,
        "measurementId": scope.measurement_id,
        "reviewKind": None,
        "reviewer": None,
        "reviewedAt": None,
        "reviewedBeforeOutputs": None,
        "independenceAttestation": None,
        "decisions": _blank_decisions(scope),
        "disputes": [],
    }


def _blank_decisions(scope: ReviewScope) -> list[dict[str, object]]:
    return [{"caseId": case_id, "decision": None, "rationale": None} for case_id in scope.case_ids]


def _check_scope(review: AuthorReview | IndependentReview, path: Path, scope: ReviewScope, now: datetime) -> None:
    if review.measurement_id != scope.measurement_id:
        found = f"{review.measurement_id}, which is another measurement than {scope.measurement_id}"
        _refuse(path, "/measurementId", found)
    check_past(review.reviewed_at, now, CODE, path)
    _check_decisions(review.decisions, path, scope)


def check_past(at: str, now: datetime, code: str, path: Path, pointer: str = "/reviewedAt") -> None:
    """Raise `SettingsError` where the time `at` is later than `now`, with both and how far apart they are."""
    moment = parse_time(at)
    if moment > now:
        found = f"{at}, which is {moment - now} after the present {format_time(now)}"
        raise SettingsError(
            code, path=str(path), pointer=pointer, found=found, hint="compare the clocks; no future is accepted"
        )


def _check_decisions(decisions: Sequence[Decision], path: Path, scope: ReviewScope) -> None:
    seen: set[str] = set()
    known = frozenset(scope.case_ids)
    for index, decision in enumerate(decisions):
        if decision.case_id not in known:
            _refuse(
                path, f"/decisions/{index}/caseId", f"the case {decision.case_id!r}, which the corpus does not have"
            )
        if decision.case_id in seen:
            _refuse(path, f"/decisions/{index}/caseId", f"the case {decision.case_id!r} a second time")
        seen.add(decision.case_id)
    missing = [case_id for case_id in scope.case_ids if case_id not in seen]
    if missing:
        _refuse(path, "/decisions", f"no decision about {', '.join(missing[:5])}" + (" …" if missing[5:] else ""))


def _check_disputes(review: IndependentReview, path: Path, scope: ReviewScope) -> None:
    decided = {item.case_id: item.decision for item in review.decisions}
    for index, dispute in enumerate(review.disputes):
        place = f"/disputes/{index}"
        if dispute.case_id not in decided:
            _refuse(path, f"{place}/caseId", f"the case {dispute.case_id!r}, which the corpus does not have")
        if (dispute.resolution is None) != (dispute.adjudicator is None):
            _refuse(path, place, "a resolution without its adjudicator, or an adjudicator without a resolution")
        if dispute.adjudicator is None:
            if decided[dispute.case_id] != "changes_requested":
                _refuse(
                    path, place, f"an open dispute about {dispute.case_id!r}, whose decision is not changes_requested"
                )
            continue
        pointer = f"{place}/adjudicator"
        check_independent(dispute.adjudicator, scope.authors, CODE, path, pointer)
        check_independent(dispute.adjudicator, (review.reviewer,), CODE, path, pointer, "the reviewer")


def _refuse(path: Path, pointer: str, found: str, allowed: Sequence[str] = ()) -> NoReturn:
    raise SettingsError(CODE, path=str(path), pointer=pointer, found=found, allowed=allowed)
