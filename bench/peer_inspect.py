"""The peer: CPU that Inspect AI takes for samples of one call each with its mock model. Prints JSON.

It runs in an environment of its own, `.venv-bench`.
"""

from __future__ import annotations

import json
import logging
import statistics
import tempfile
import time

from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import generate

SAMPLES = 300
ROUNDS = 9


def output() -> ModelOutput:
    """Return an answer with a usage, so that no vocabulary is fetched to count tokens."""
    answer = ModelOutput.from_content("mockllm/model", "answer")
    answer.usage = ModelUsage(input_tokens=10, output_tokens=2, total_tokens=12)
    return answer


def run(samples: int) -> float:
    """Return CPU seconds of one evaluation with logging."""
    task = Task(dataset=[Sample(input=f"question {number}") for number in range(samples)], solver=[generate()])
    model = get_model("mockllm/model", custom_outputs=[output() for _ in range(samples)])
    begin = time.process_time()
    logs = inspect_eval(task, model=model, log_dir=tempfile.mkdtemp(), display="none")
    if logs[0].status != "success":
        raise SystemExit(f"the peer ended {logs[0].status}")
    return time.process_time() - begin


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    run(3)
    alone = statistics.median(run(3) for _ in range(ROUNDS)) * 1000
    print(
        json.dumps(
            {
                "cpu_ms_of_an_evaluation_of_three_samples": round(alone, 2),
                "cpu_ms_per_three_samples_of_a_long_evaluation": round(run(SAMPLES) * 3000 / SAMPLES, 2),
            }
        )
    )
