"""Reviews of outputs: a blank form for each admitted output, and what filled-in forms come to.

The rules: a form binds the measurement, the captures and the output's bytes, and asks exactly what was frozen. It
counts once a person has signed it and answered all of it. The person is no author of the corpus and not who was asked;
the review comes after the run began, and not in the future. An issue says what it is. A form changes no count, no
reference and no receipt. An output that was not admitted has no form: its failure stands in the checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from casebound.bench.captures import CaptureFile
from casebound.bench.checks import check_record
from casebound.bench.files import read_file
from casebound.bench.parsing import parse_filled
from casebound.bench.receipts import check_independent, check_past
from casebound.bench.subject import Subject
from casebound.bench.wording import QUESTIONS
from casebound.canonical import digest_of, readable_bytes
from casebound.clock import parse_time
from casebound.contracts.bench_review import AspectReview, Aspects, OutputReview, SemanticCheckReview
from casebound.errors import SettingsError
from casebound.pointer import first_difference

CODE = "BENCH_REVIEW"
_PERSONAL = ("reviewKind", "reviewer", "reviewedAt", "independenceAttestation", "annotationDispute")
_BLANK = {"verdict": None, "note": None}

Slot = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ReviewedRun:
    """What the forms of a run come to.

    Attributes:
        outputs: how many admitted outputs there are.
        complete: how many of them have a form that a person signed and answered whole.
        issues: how many answers of any form say that there is an issue.
        disputes: what reviewers hold against references, each with its slot.
    """

    outputs: int
    complete: int
    issues: int
    disputes: tuple[str, ...]


def blank_forms(captures: CaptureFile, subject: Subject) -> Iterator[tuple[Slot, OutputReview]]:
    """Yield the unsigned form of every admitted output, in the order of the lines."""
    for record in captures.records():
        slot = check_record(record, subject)
        if record.output is None or slot.assessment is None:
            continue
        text = record.output.text
        checks = subject.cases[record.case_id].semantic_checks
        form = OutputReview(
            measurement_id=captures.head.measurement_id,
            captures=captures.digest,
            case_id=record.case_id,
            repeat=record.repeat,
            assessment=slot.assessment,
            output=digest_of(text.encode()),
            output_text=text,
            review_kind=None,
            reviewer=None,
            reviewed_at=None,
            independence_attestation=None,
            aspects=Aspects(**{name: AspectReview(question=asked, **_BLANK) for name, asked in QUESTIONS.items()}),
            checks=tuple(SemanticCheckReview(check_id=item.check_id, text=item.text, **_BLANK) for item in checks),
            annotation_dispute=None,
        )
        yield (record.case_id, record.repeat), form


def form_files(captures: CaptureFile, subject: Subject) -> dict[str, bytes]:
    """Return the forms by file name, to be filled in by people."""
    return {_file_name(slot): readable_bytes(form.to_json()) for slot, form in blank_forms(captures, subject)}


def load_reviews(folder: Path, captures: CaptureFile, subject: Subject, now: datetime) -> ReviewedRun:
    """Return what the forms in `folder` come to; one that is missing or not finished is just not complete.

    Raises:
        SettingsError: a form does not hold, or stands there without belonging to an output (`BENCH_REVIEW`); one
            cannot be read (`BENCH_FILE`).
    """
    waiting = _names(folder)
    outputs = complete = issues = 0
    disputes: list[str] = []
    for slot, blank in blank_forms(captures, subject):
        outputs += 1
        name = _file_name(slot)
        if name not in waiting:
            continue
        waiting.remove(name)
        form = _load_form(folder / name, blank)
        _check_person(folder / name, form, captures, subject, now)
        complete += _is_complete(form)
        issues += sum(answer.verdict == "issue" for answer in _answers(form))
        if form.annotation_dispute is not None:
            disputes.append(f"{form.case_id}, repeat {form.repeat}: {form.annotation_dispute}")
    for name in sorted(waiting):
        _refuse(folder / name, None, "a file that belongs to no admitted output of these captures")
    return ReviewedRun(outputs, complete, issues, tuple(disputes))


def _file_name(slot: Slot) -> str:
    return f"{slot[0]}.{slot[1]}.json"


def _names(folder: Path) -> set[str]:
    try:
        return {path.name for path in folder.iterdir()}
    except OSError as exc:
        raise SettingsError("BENCH_FILE", path=str(folder), found=exc.strerror or "no folder") from exc


def _load_form(path: Path, blank: OutputReview) -> OutputReview:
    form = parse_filled(read_file(path), OutputReview, CODE, path)
    difference = first_difference(_unanswered(form), blank.to_json())
    if difference is not None:
        _refuse(path, difference, "something else than what was written there for this output")
    return form


def _unanswered(form: OutputReview) -> dict[str, Any]:
    """Return a form as JSON without what a person fills in."""
    value: dict[str, Any] = {**form.to_json(), **dict.fromkeys(_PERSONAL)}
    for answer in (*value["aspects"].values(), *value["checks"]):
        answer.update(_BLANK)
    return value


def _check_person(path: Path, form: OutputReview, captures: CaptureFile, subject: Subject, now: datetime) -> None:
    for place, answer in _placed_answers(form):
        if answer.verdict == "issue" and answer.note is None:
            _refuse(path, f"{place}/note", "an issue without a note that says what it is")
    if form.reviewer is not None:
        asked = [name for name in (captures.head.executor, captures.head.model) if name is not None]
        check_independent(form.reviewer, subject.corpus.authors, CODE, path)
        check_independent(form.reviewer, asked, CODE, path, role="who was asked")
    if form.reviewed_at is not None:
        check_past(form.reviewed_at, now, CODE, path)
        if parse_time(form.reviewed_at) <= parse_time(captures.head.started_at):
            _refuse(
                path, "/reviewedAt", f"{form.reviewed_at}, when the run of {captures.head.started_at} had no output"
            )


def _is_complete(form: OutputReview) -> bool:
    signed = None not in (form.review_kind, form.reviewer, form.reviewed_at, form.independence_attestation)
    return signed and all(answer.verdict is not None for answer in _answers(form))


def _answers(form: OutputReview) -> Sequence[AspectReview | SemanticCheckReview]:
    return (*form.aspects.all(), *form.checks)


def _placed_answers(form: OutputReview) -> Iterator[tuple[str, AspectReview | SemanticCheckReview]]:
    yield from ((f"/aspects/{name}", answer) for name, answer in form.aspects)
    yield from ((f"/checks/{index}", answer) for index, answer in enumerate(form.checks))


def _refuse(path: Path, pointer: str | None, found: str) -> NoReturn:
    raise SettingsError(CODE, path=str(path), pointer=pointer, found=found)
