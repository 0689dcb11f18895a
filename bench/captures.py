"""How long 10,000 captured outputs take to load and check, and how much memory that takes; prints one JSON object.

    python bench/captures.py [OUTPUTS]

The benchmark of entity links, its cases under new ids until there are enough; each answer is admitted, so none
leaves a layer early. The peer is `json.loads` of the same lines. Memory is what Python allocates at most beyond the
corpus, for all outputs and for a tenth of them under the same plan.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from casebound.bench.captures import load_captures
from casebound.bench.checks import check_captures
from casebound.bench.corpus import load_corpus
from casebound.bench.instrument import open_instrument
from casebound.bench.subject import Subject, input_digest, open_subject
from casebound.canonical import RunningDigest, digest_of
from casebound.contracts.bench_captures import CapturedOutput, CaptureRecord, Captures, RecordedLines
from casebound.host import build_host

OUTPUTS = 10_000
ROUNDS = 3
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def large_subject(cases: int) -> Subject:
    """Return the entity-link benchmark with `cases` cases in its development split."""
    host = build_host()
    instrument = open_instrument(host, "entity-link")
    corpus = load_corpus(instrument.corpus_path, instrument.model).corpus
    own = corpus.in_split("development")
    copies = tuple(own[n % len(own)].model_copy(update={"case_id": f"case-{n:06}"}) for n in range(cases))
    corpus = corpus.model_copy(update={"cases": copies})
    return open_subject(instrument.spec, corpus, digest_of(b"a measurement"), host)


def write_captures(folder: Path, subject: Subject, outputs: int) -> Path:
    """Write captures of every case twice, of which only so many slots have a line: an admitted output."""
    case_ids = tuple(subject.cases)
    running, count, size = RunningDigest(), 0, 0
    with (folder / "captures.jsonl").open("wb") as file:
        for case_id in case_ids[: outputs // 2]:
            case = subject.cases[case_id]
            left, right = (
                {"entityId": side.entity_id, "mentionIds": [mention.mention_id for mention in side.mentions]}
                for side in (case.input.left, case.input.right)
            )
            rationale = "The mentions were read side by side. " * 20
            answer = {"version": "entity-link-suggestion/v1", "assessment": case.expected_assessment}
            output = CapturedOutput(
                text=json.dumps({**answer, "rationale": rationale, "left": left, "right": right}), finish_reason="stop"
            )
            for repeat in (1, 2):
                record = CaptureRecord(
                    case_id=case_id,
                    repeat=repeat,
                    input=input_digest(case.input),
                    status="output",
                    output=output,
                    usage={"input_tokens": 900, "output_tokens": 200},
                    duration_ms=1200,
                    cost_usd="0.0012",
                )
                line = record.to_bytes() + b"\n"
                running.update(line)
                file.write(line)
                count, size = count + 1, size + len(line)
    head = Captures(
        format=subject.versions.captures,
        measurement_id=subject.measurement_id,
        plan_id=None,
        split="development",
        case_ids=case_ids,
        repeats=2,
        started_at="2026-11-29T08:00:00.000Z",
        executor="scripted",
        model=None,
        response_format="json_schema",
        receipts=(),
        records=RecordedLines(count=count, bytes=size, digest=running.digest()),
    )
    path = folder / "captures.json"
    path.write_bytes(head.to_bytes())
    return path


def check(path: Path, subject: Subject) -> int:
    """Load and check; return how many outputs were admitted."""
    return check_captures(load_captures(path, subject, (), NOW), subject).admitted


def seconds(work: Callable[[], object]) -> list[float]:
    """Return the least CPU and wall time of a few rounds."""
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        best = [min(best[0], time.process_time() - cpu), min(best[1], time.perf_counter() - wall)]
    return [round(least, 3) for least in best]


def peak(work: Callable[[], object]) -> int:
    """Return the most bytes that were allocated at once."""
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def main() -> None:
    outputs = int(sys.argv[1]) if len(sys.argv) > 1 else OUTPUTS
    subject = large_subject(outputs // 2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tenth").mkdir()
        few = write_captures(folder / "tenth", subject, outputs // 10)
        path = write_captures(folder, subject, outputs)
        lines = path.with_name("captures.jsonl")
        assert check(path, subject) == outputs
        figures = {
            "outputs": outputs,
            "bytes": lines.stat().st_size,
            "load_and_check_s": seconds(lambda: check(path, subject)),
            "json_loads_s": seconds(lambda: [json.loads(line) for line in lines.open("rb")]),
            "peak_bytes_of_a_tenth": peak(lambda: check(few, subject)),
            "columns": ["cpu", "wall"],
            "peak_bytes": peak(lambda: check(path, subject)),
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
