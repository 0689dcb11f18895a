"""Peers on the same model server: Inspect AI, and the bare SDK of OpenAI. Prints JSON: their CPU, and their memory.

It runs in an environment of its own, `.venv-bench`. Only the calls are measured, not the start of the process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import sys
import tempfile
import time
from urllib.request import urlopen


def inspect(url: str, calls: int, in_flight: int, messages: list[str]) -> float:
    """Return CPU seconds of one evaluation: a sample a call, each with one of the messages of our own requests."""
    from inspect_ai import Task
    from inspect_ai import eval as inspect_eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import GenerateConfig, get_model
    from inspect_ai.solver import generate

    config = GenerateConfig(max_connections=in_flight)
    model = get_model("openai/model-1", base_url=f"{url}/v1", api_key="sk-bench", responses_api=False, config=config)
    samples = [Sample(input=messages[number % len(messages)]) for number in range(calls)]
    task = Task(dataset=samples, solver=[generate()])
    begin = time.process_time()
    logs = inspect_eval(task, model=model, log_dir=tempfile.mkdtemp(), display="none", max_samples=in_flight)
    if logs[0].status != "success":
        raise SystemExit(f"the peer ended {logs[0].status}: {logs[0].error}")
    return time.process_time() - begin


async def sdk(url: str, calls: int, in_flight: int, bodies: list[dict[str, object]]) -> float:
    """Return CPU seconds of as many calls, each with one of our own requests as it was sent."""
    from openai import AsyncOpenAI

    slots = asyncio.Semaphore(in_flight)
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="sk-bench", max_retries=0) as client:

        async def call(number: int) -> None:
            async with slots:
                reply = await client.chat.completions.create(**bodies[number % len(bodies)])  # type: ignore[call-overload]
                json.loads(reply.choices[0].message.content)

        await asyncio.gather(*(call(number) for number in range(in_flight)))
        begin = time.process_time()
        await asyncio.gather(*(call(number) for number in range(calls)))
        return time.process_time() - begin


def main(side: str, url: str, calls: int, in_flight: int) -> None:
    """Measure one side and print."""
    logging.disable(logging.CRITICAL)
    with urlopen(f"{url}/bodies") as response:  # loopback
        bodies = [json.loads(body) for stage, body in json.load(response).items() if stage != "other"]
    if side == "inspect":
        cpu = inspect(url, calls, in_flight, [body["messages"][-1]["content"] for body in bodies])
    else:
        cpu = asyncio.run(sdk(url, calls, in_flight, bodies))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu_ms_a_call": cpu * 1000 / calls, "peak_mb": most}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
