"""Receipts: every rejection, and what those that hold permit."""

from __future__ import annotations

import ast
import copy
import inspect
import json
from datetime import timedelta
from pathlib import Path

import pytest
from casebound.bench import receipts
from casebound.bench.receipts import (
    author_template,
    independent_template,
    parse_author_review,
    parse_independent_review,
    person_key,
    readiness,
)
from casebound.bench.wording import RECEIPTS
from casebound.canonical import digest_of, readable_bytes
from casebound.clock import format_time
from casebound.errors import CaseboundError
from casebound.testing.bench_pairs import AUTHORS, MEASUREMENT, NOW, REVIEWED, pair_scope
from hypothesis import given
from hypothesis import strategies as st

SCOPE = pair_scope()
PATH = Path("review.json")
PARSERS = {"author": parse_author_review, "independent": parse_independent_review}


def form(kind: str, **changed: object) -> dict[str, object]:
    """Return a receipt that holds, in which `changed` replaces keys; ... takes one away."""
    common = {
        "measurementId": MEASUREMENT,
        "reviewedAt": REVIEWED,
        "reviewedBeforeOutputs": True,
        "decisions": [{"caseId": case, "decision": "approved", "rationale": "read"} for case in SCOPE.case_ids],
    }
    own: dict[str, object] = {"selfReviewVersion": "casebound-entity-author-review/v1", "reviewer": AUTHORS[0]}
    if kind == "independent":
        own = {
            "reviewVersion": "casebound-entity-annotation-review/v1",
            "reviewKind": "independent-human",
            "reviewer": "Iris Reader",
            "independenceAttestation": True,
            "disputes": [],
        }
    return {key: value for key, value in {**common, **own, **changed}.items() if value is not ...}


def parse(kind: str, value: object, now=NOW):
    data = value if isinstance(value, bytes) else readable_bytes(value)
    return PARSERS[kind](data, PATH, SCOPE, now)


def refusal(kind: str, value: object, now=NOW) -> CaseboundError:
    with pytest.raises(CaseboundError) as caught:
        parse(kind, value, now)
    assert caught.value.exit_status == 2
    assert caught.value.path == str(PATH)
    return caught.value


@pytest.mark.spec("B-066", "B-069")
@pytest.mark.parametrize("kind", PARSERS)
def test_a_receipt_that_holds_is_kept_as_it_was_filled_in(kind):
    data = readable_bytes(form(kind))
    receipt = parse(kind, data)
    assert (receipt.data, receipt.digest, receipt.path) == (data, digest_of(data), PATH)
    assert receipt.review.reviewed_at == REVIEWED


KEYS = [(kind, key) for kind in PARSERS for key in form(kind)]


@pytest.mark.spec("B-066", "B-067", "B-069", "B-070", "B-071")
@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_a_receipt_without_one_of_its_keys_is_refused(kind, key):
    error = refusal(kind, form(kind, **{key: ...}))
    assert (error.code, error.pointer) == ("BENCH_RECEIPT", f"/{key}")
    assert refusal(kind, form(kind, **{key: None})).pointer == f"/{key}"


@pytest.mark.spec("B-067", "B-070", "B-077")
@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        *((kind, "reviewedBeforeOutputs", value) for kind in PARSERS for value in (False, "true", 1)),
        *(("independent", "independenceAttestation", value) for value in (False, "true", 1)),
        *(("independent", "reviewKind", value) for value in ("model", "author", "Independent-Human", "ai-agent", "")),
        ("independent", "reviewVersion", "casebound-entity-author-review/v1"),
        ("author", "selfReviewVersion", "casebound-entity-annotation-review/v1"),
        ("author", "selfReviewVersion", "casebound-entity-author-review/v2"),
        *((kind, "reviewer", value) for kind in PARSERS for value in ("", "  ", 7)),
        *((kind, "reviewedAt", value) for kind in PARSERS for value in ("yesterday", "2026-11-10", 0)),
    ],
)
def test_a_statement_that_is_not_made_is_refused(kind, key, value):
    error = refusal(kind, form(kind, **{key: value}))
    assert (error.code, error.pointer) == ("BENCH_RECEIPT", f"/{key}")


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("key", ["Reviewer", "reviewed_at", "goldReady", "asIndependent"])
def test_a_key_that_nobody_knows_is_refused_however_it_is_cased(kind, key):
    assert refusal(kind, form(kind, **{key: True})).pointer == f"/{key}"


def test_a_receipt_is_strict_json():
    good = readable_bytes(form("author"))
    twice = good.replace(b'"reviewer":', b'"reviewer": "Iris", "reviewer":')
    assert (refusal("author", twice).code, refusal("author", twice).pointer) == ("BENCH_FILE", "/reviewer")
    for data in (good[:-3], good.decode().encode("utf-16"), b"\xff" + good, b""):
        assert refusal("author", data).code == "BENCH_FILE"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just("9" * 5000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
DEEPER = [["decisions", 0], ["decisions", 0, "caseId"], ["decisions", 1, "decision"], ["disputes", 0, "adjudicator"]]


@given(kind=st.sampled_from(list(PARSERS)), data=st.data(), value=JSON)
def test_whatever_stands_anywhere_a_receipt_is_read_or_refused(kind, data, value):
    whole = form(kind)
    if kind == "independent":
        whole["disputes"] = [dispute()]
    places = [[key] for key in whole] + [place for place in DEEPER if place[0] in whole]
    *way, last = data.draw(st.sampled_from(places))
    part = whole
    for token in way:
        part = part[token]
    part[last] = value
    ending = (2, str(PATH))
    try:
        parse(kind, json.dumps(whole).encode())
    except CaseboundError as exc:
        ending = (exc.exit_status, exc.path)
    assert ending == (2, str(PATH))


# --- the cases ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("B-068", "B-073", "B-074")
@pytest.mark.parametrize("kind", PARSERS)
def test_every_case_is_decided_exactly_once(kind):
    decisions = form(kind)["decisions"]
    assert "no decision about b" in refusal(kind, form(kind, decisions=[decisions[0], *decisions[2:]])).found
    assert refusal(kind, form(kind, decisions=[])).pointer == "/decisions"
    again = refusal(kind, form(kind, decisions=[*decisions, decisions[1]]))
    assert (again.pointer, "a second time" in again.found) == (f"/decisions/{len(decisions)}/caseId", True)
    strange = {**decisions[0], "caseId": "z"}
    assert refusal(kind, form(kind, decisions=[*decisions, strange])).pointer == f"/decisions/{len(decisions)}/caseId"


@pytest.mark.spec("B-068")
@pytest.mark.parametrize("change", [{"rationale": ""}, {"rationale": " \n"}, {"decision": "ok"}, {"rationale": ...}])
def test_a_decision_has_one_of_two_words_and_a_reason(change):
    for kind in PARSERS:
        decisions = copy.deepcopy(form(kind)["decisions"])
        decisions[1] = {key: value for key, value in {**decisions[1], **change}.items() if value is not ...}
        assert refusal(kind, form(kind, decisions=decisions)).pointer == f"/decisions/1/{next(iter(change))}"


# --- identity and time ----------------------------------------------------------------------------------------------


@pytest.mark.spec("B-074", "B-095")
@pytest.mark.parametrize("kind", PARSERS)
def test_a_receipt_of_another_measurement_is_refused(kind):
    error = refusal(kind, form(kind, measurementId=digest_of(b"another corpus")))
    assert (error.pointer, MEASUREMENT in error.found) == ("/measurementId", True)


@pytest.mark.spec("B-074")
@pytest.mark.parametrize("kind", PARSERS)
def test_a_time_of_the_future_is_refused_with_both_times_and_now_is_none(kind):
    parse(kind, form(kind, reviewedAt=format_time(NOW)))
    later = format_time(NOW + timedelta(milliseconds=1))
    error = refusal(kind, form(kind, reviewedAt=later))
    assert error.pointer == "/reviewedAt"
    for part in (later, format_time(NOW), "0:00:00.001000"):
        assert part in error.found


def test_a_person_is_told_how_a_time_is_written():
    for written in ("2026-11-10T08:00:00Z", "10.11.2026", "2026-11-10T08:00:00.000+01:00", "0001-01-01T00:00:00.000Z"):
        error = refusal("author", form("author", reviewedAt=written))
        assert "2026-11-01T08:00:00.000Z, in UTC" in error.found


def test_a_person_is_told_that_a_date_or_an_hour_does_not_exist():
    for written in ("2026-02-30T08:00:00.000Z", "2026-11-10T25:00:00.000Z"):
        error = refusal("author", form("author", reviewedAt=written))
        assert error.pointer == "/reviewedAt"
        assert f"{written} is no moment" in error.found


def test_a_person_is_told_of_a_byte_order_mark_in_words_of_his_own():
    error = refusal("author", b"\xef\xbb\xbf" + readable_bytes(form("author")))
    assert error.code == "BENCH_FILE"
    assert "a byte-order mark before the JSON" in error.found
    assert "utf-8-sig" not in str(error)


# --- who ------------------------------------------------------------------------------------------------------------

VARIANTS = (
    "Ada-Author",
    "ADA-AUTHOR",
    "ada author",
    "  Ada   Author ",
    "AdaAuthor",
    "ada_author.",
    "Ａｄａ－Ａｕｔｈｏｒ",  # full width
    "A\u0301da-Author",  # a combining accent
    "Áda-Author",  # the same, composed
    "Ada\u200b-Aut\u2060hor",  # nothing to be seen
    "\u202eAda-Author",
    "𝐀𝐝𝐚-𝐀𝐮𝐭𝐡𝐨𝐫",  # mathematical
    "Аda-Аuthor",  # Cyrillic
    "Αda-Αuthοr",  # Greek
)


@pytest.mark.spec("B-072", "B-074")
@pytest.mark.parametrize("name", VARIANTS)
def test_an_author_is_not_independent_however_the_name_is_written(name):
    error = refusal("independent", form("independent", reviewer=name))
    assert (error.code, error.pointer) == ("BENCH_RECEIPT", "/reviewer")
    assert "Ada-Author" in error.found
    parse("author", form("author", reviewer=name))


@given(st.sampled_from(AUTHORS), st.data())
def test_no_mix_of_case_width_and_spaces_makes_another_person(author, data):
    def written(sign: str) -> str:
        wide = chr(ord(sign) + 0xFEE0)
        return data.draw(st.sampled_from([sign, sign.upper(), sign.lower(), wide, f"{sign} ", f"{sign}\u200d"]))

    assert person_key("".join(map(written, author))) == person_key(author)


def test_people_with_other_names_are_others():
    names = ["Ada Author", "Ada Autor", "Iris Reader", "李明", "李民", "Анна", "Olga", "ソラ", "कमल", "कमला"]
    assert len({person_key(name) for name in names}) == len(names)


@pytest.mark.spec("B-072")
@pytest.mark.parametrize("name", ["\u200b", "!!!", "\u0301"])
def test_a_name_without_a_letter_is_nobody(name):
    assert refusal("independent", form("independent", reviewer=name)).pointer == "/reviewer"


@pytest.mark.spec("B-067")
def test_the_authors_receipt_is_by_an_author():
    error = refusal("author", form("author", reviewer="Iris Reader"))
    assert (error.pointer, error.allowed) == ("/reviewer", AUTHORS)


@pytest.mark.spec("B-074", "B-077", "B-082")
def test_one_kind_of_receipt_is_never_taken_for_the_other():
    assert refusal("independent", form("author")).code == "BENCH_RECEIPT"
    assert refusal("author", form("independent")).code == "BENCH_RECEIPT"
    both = {**form("author"), **form("independent")}
    assert refusal("independent", both).pointer == "/selfReviewVersion"


# --- disputes -------------------------------------------------------------------------------------------------------


def dispute(**changed: object) -> dict[str, object]:
    whole = {"caseId": "a", "question": "same?", "resolution": "yes, by the alias", "adjudicator": "Jo Judge"}
    return {**whole, **changed}


def disputed(*disputes: dict[str, object], decision: str = "approved") -> dict[str, object]:
    value = form("independent", disputes=list(disputes))
    value["decisions"][0]["decision"] = decision
    return value


@pytest.mark.spec("B-071", "B-075")
def test_a_dispute_is_resolved_or_its_case_remains_with_changes_requested():
    parse("independent", disputed(dispute()))
    unsettled = dispute(resolution=None, adjudicator=None)
    receipt = parse("independent", disputed(unsettled, decision="changes_requested"))
    assert readiness(None, receipt.review).independent_review == "changes_requested"
    error = refusal("independent", disputed(dispute(), unsettled))
    assert (error.pointer, "open dispute" in error.found) == ("/disputes/1", True)


@pytest.mark.spec("B-071", "B-075")
@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"caseId": "z"}, "/disputes/0/caseId"),
        ({"question": ""}, "/disputes/0/question"),
        ({"adjudicator": None}, "/disputes/0"),
        ({"resolution": None}, "/disputes/0"),
        ({"resolution": " "}, "/disputes/0/resolution"),
        ({"adjudicator": "ａｄａ ａｕｔｈｏｒ"}, "/disputes/0/adjudicator"),
        ({"adjudicator": "IRIS READER"}, "/disputes/0/adjudicator"),
        ({"adjudicator": "?"}, "/disputes/0/adjudicator"),
        ({"asked": "by mail"}, "/disputes/0/asked"),
    ],
)
def test_a_dispute_that_is_not_closed_by_somebody_independent_is_refused(change, pointer):
    assert refusal("independent", disputed(dispute(**change))).pointer == pointer


# --- what they permit -----------------------------------------------------------------------------------------------


def review(kind: str, standing: str):
    if standing == "pending":
        return None
    value = form(kind)
    value["decisions"][2]["decision"] = standing
    return parse(kind, value).review


TRUTH = {
    ("pending", "pending"): (False, False),
    ("pending", "approved"): (False, False),
    ("pending", "changes_requested"): (False, False),
    ("approved", "pending"): (True, False),
    ("approved", "approved"): (True, True),
    ("approved", "changes_requested"): (False, False),
    ("changes_requested", "pending"): (False, False),
    ("changes_requested", "approved"): (False, False),
    ("changes_requested", "changes_requested"): (False, False),
}


@pytest.mark.spec("B-078", "B-079", "B-080", "B-081", "B-139a")
@pytest.mark.parametrize(("author", "independent"), TRUTH)
def test_readiness_is_the_truth_table(author, independent):
    ready = readiness(review("author", author), review("independent", independent))
    assert (ready.exploratory_ready, ready.gold_ready) == TRUTH[author, independent]
    attested = {"approved": "attested_independent_human"}
    assert (ready.author_review, ready.independent_review) == (author, attested.get(independent, independent))
    assert set(ready.to_json()) == {"authorReview", "independentReview", "exploratoryReady", "goldReady"}


@pytest.mark.spec("B-077", "B-082")
def test_no_option_and_no_variable_makes_a_review_an_independent_one(monkeypatch):
    for name in ("CASEBOUND_INDEPENDENT", "CASEBOUND_GOLD", "CASEBOUND_REVIEW_KIND", "CASEBOUND_ALLOW_AUTHOR"):
        monkeypatch.setenv(name, "1")
    assert refusal("independent", form("independent", reviewer=AUTHORS[1])).pointer == "/reviewer"
    assert refusal("independent", form("independent", reviewKind="model")).pointer == "/reviewKind"
    source = inspect.getsource(receipts)
    imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in imported if name.startswith(("casebound.settings", "casebound.llm", "os", "click"))}
    assert "environ" not in source
    taken = {name: list(inspect.signature(parser).parameters) for name, parser in PARSERS.items()}
    assert set(map(tuple, taken.values())) == {("data", "path", "scope", "now")}


@pytest.mark.spec("B-082")
def test_only_a_filled_in_form_is_a_receipt():
    for kind, template in (("author", author_template(SCOPE)), ("independent", independent_template(SCOPE))):
        assert refusal(kind, template).code == "BENCH_RECEIPT"
        said = ("reviewer", "reviewedAt", "reviewedBeforeOutputs", "reviewKind", "independenceAttestation")
        assert {template[key] for key in said if key in template} == {None}
        assert {(item["decision"], item["rationale"]) for item in template["decisions"]} == {(None, None)}
        filled = {**template, **{key: value for key, value in form(kind).items() if template.get(key) is None}}
        filled["decisions"] = form(kind)["decisions"]
        parse(kind, filled)
        assert list(json.loads(readable_bytes(template))) == list(template)


@pytest.mark.spec("B-076")
def test_the_wording_claims_closure_and_attestation_and_nothing_more():
    for words in (
        "its record is closed",
        "what its reviewer attests",
        "neither who the reviewer is",
        "reviews no output",
    ):
        assert words in RECEIPTS
