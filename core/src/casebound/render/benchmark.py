"""A frozen benchmark as one page for those who review it: every case with its mentions, reference, checks, decisions.

The page is self-contained. It runs no script, loads nothing and sends nothing: its content security policy allows one
style, by digest. All data is escaped, and characters that nobody can see become visible.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape

from casebound.bench.bundle import limitations
from casebound.bench.measurement import Measurement
from casebound.bench.receipts import Receipt
from casebound.canonical import digest_of
from casebound.contracts.bench_checks import CheckSummary
from casebound.contracts.bench_receipts import IndependentReview
from casebound.contracts.benchmark import CorpusCase
from casebound.text import visible

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 0 1rem 4rem; }
h1, h2, h3 { line-height: 1.2; overflow-wrap: anywhere; }
section { border-top: 1px solid; margin-top: 2rem; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1rem; }
.side, .decision { border: 1px solid; border-radius: .5rem; padding: 0 1rem; min-width: 0; }
dt { font-size: .85rem; opacity: .8; }
dd { margin: 0 0 .5rem; overflow-wrap: anywhere; white-space: pre-wrap; }
dd dl { border-left: 3px solid; padding-left: .75rem; margin: .25rem 0 .75rem; white-space: normal; }
mark { background: #ffe58a; color: #000; padding: 0 .15em; }
code { overflow-wrap: anywhere; }
.note { opacity: .8; }
.changes_requested { font-weight: bold; }
"""


def review_page(measurement: Measurement, checks: CheckSummary | None) -> str:
    """Return the page, HTML in UTF-8; the same measurement and checks give the same bytes."""
    title = f"Review of the benchmark {measurement.instrument.spec.name}"
    policy = f"default-src 'none'; style-src '{_style_digest()}'; base-uri 'none'; form-action 'none'"
    body = [
        f"<h1>{_text(title)}</h1>",
        *_about(measurement, checks),
        *_contents(measurement),
        *(line for case in measurement.corpus.corpus.cases for line in _case(case, measurement)),
        *_identity(measurement),
    ]
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="referrer" content="no-referrer">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            *body,
            "</body>",
            "</html>",
            "",
        )
    )


def _style_digest() -> str:
    """Return the digest of the style as a content security policy names it."""
    digest = bytes.fromhex(digest_of(STYLE.encode()).removeprefix("sha256:"))
    return "sha256-" + base64.b64encode(digest).decode()


# --- around the cases -----------------------------------------------------------------------------------------------


def _about(measurement: Measurement, checks: CheckSummary | None) -> Iterator[str]:
    ready = measurement.readiness
    yield "<dl>"
    yield from _pair("measurement", measurement.measurement_id)
    yield from _pair("corpus", measurement.identity.corpus_version)
    yield from _pair("provenance", measurement.corpus.corpus.provenance)
    yield from _pair("authors", ", ".join(measurement.corpus.corpus.authors))
    yield from _pair("author's review", ready.author_review)
    yield from _pair("independent review", ready.independent_review)
    yield from _pair("ready for exploration", "yes" if ready.exploratory_ready else "no")
    yield from _pair("ready as gold", "yes" if ready.gold_ready else "no")
    yield "</dl>"
    yield "<h2>What this does not establish</h2>"
    yield from _list(limitations(measurement, exposed=checks is not None))
    if checks is not None:
        yield "<h2>Layered checks of captured outputs</h2>"
        yield from _value(checks.to_json(), frozenset())


def _contents(measurement: Measurement) -> Iterator[str]:
    corpus = measurement.corpus.corpus
    yield "<h2>Cases</h2>"
    for split in corpus.SPLITS:
        yield f"<h3>{_text(split)}</h3>"
        yield "<ul>"
        for case in corpus.in_split(split):
            yield f'<li><a href="#{_anchor(case)}">{_text(case.case_id)}</a></li>'
        yield "</ul>"


def _identity(measurement: Measurement) -> Iterator[str]:
    yield "<section>"
    yield "<h2>Measurement identity</h2>"
    yield from _value(measurement.identity.to_json(), frozenset())
    yield "</section>"


# --- a case ---------------------------------------------------------------------------------------------------------


def _case(case: CorpusCase, measurement: Measurement) -> Iterator[str]:
    marked = frozenset(case.input.selected())
    yield f'<section id="{_anchor(case)}">'
    yield f"<h2>{_text(case.case_id)}</h2>"
    yield f'<p class="note">{_text(case.split)} · {_text(", ".join(case.tags))}</p>'
    yield "<h3>What the model is given</h3>"
    yield '<div class="sides">'
    for name, part in case.input.to_json().items():
        yield f'<div class="side"><h4>{_label(name)}</h4>'
        yield from _value(part, marked)
        yield "</div>"
    yield "</div>"
    yield "<h3>Reference, frozen before any output</h3>"
    yield "<dl>"
    yield f"<dt>expected assessment</dt><dd><strong>{_text(case.expected_assessment)}</strong></dd>"
    yield from _pair("rationale", case.reference_rationale)
    yield "</dl>"
    yield "<h3>Frozen checks of a rationale</h3>"
    yield from _list(f"{check.aspect}: {check.text}" for check in case.semantic_checks)
    yield "<h3>Decisions</h3>"
    yield from _decisions(case, measurement)
    yield "</section>"


def _decisions(case: CorpusCase, measurement: Measurement) -> Iterator[str]:
    yield '<div class="sides">'
    for who, receipt in (("author", measurement.author), ("independent person", measurement.independent)):
        yield f'<div class="decision"><h4>{_text(who)}</h4>'
        yield from _decision(case, receipt) if receipt is not None else ("<p>pending: no receipt</p>",)
        yield "</div>"
    yield "</div>"


def _decision(case: CorpusCase, receipt: Receipt) -> Iterator[str]:
    review = receipt.review
    decision = next(decision for decision in review.decisions if decision.case_id == case.case_id)
    yield f'<p class="{decision.decision}">{_label(decision.decision)}</p>'
    yield "<dl>"
    yield from _pair("rationale", decision.rationale)
    yield from _pair("reviewer", f"{review.reviewer}, {review.reviewed_at}")
    if isinstance(review, IndependentReview):
        for dispute in review.disputes:
            if dispute.case_id == case.case_id:
                yield from _pair("dispute", dispute.question)
                yield from _pair("resolution", dispute.resolution or "open")
    yield "</dl>"


# --- values ---------------------------------------------------------------------------------------------------------


def _value(value: object, marked: frozenset[str]) -> Iterator[str]:
    """Draw JSON data; texts that were selected as evidence are marked."""
    if isinstance(value, Mapping):
        yield "<dl>"
        for name, part in value.items():
            yield f"<dt>{_label(name)}</dt><dd>" + "".join(_value(part, marked)) + "</dd>"
        yield "</dl>"
    elif isinstance(value, list | tuple):
        if any(isinstance(part, Mapping) for part in value):
            for part in value:
                yield from _value(part, marked)
        else:
            yield from _list(value)
    elif value is None:
        yield '<span class="note">none</span>'
    else:
        text = f'<span dir="auto">{_text(_plain(value))}</span>'
        yield f"<mark>{text}</mark>" if value in marked else text


def _plain(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _pair(name: str, value: str) -> Iterator[str]:
    yield f'<dt>{_text(name)}</dt><dd dir="auto">{_text(value)}</dd>'


def _list(values: Iterable[object]) -> Iterator[str]:
    yield "<ul>"
    for value in values:
        yield f'<li dir="auto">{_text(_plain(value))}</li>'
    yield "</ul>"


def _label(name: str) -> str:
    """Return a key as people read it: `mentionId` → mention id."""
    return _text(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").lower())


def _anchor(case: CorpusCase) -> str:
    return "case-" + _text(case.case_id)


def _text(text: str) -> str:
    return escape(visible(text, keep="\n\t"))
