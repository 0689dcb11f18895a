"""CPU of one model call beside that of OpenAI's own SDK: the same request to the same loopback server. Prints JSON.

Run without arguments by the Python of `.venv`; the SDK's side runs in `.venv-foreign`. The server is a process of its
own, so that it costs neither side anything. Both sides warm up, are measured in turn, and the medians compared.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

CALLS = 300
IN_FLIGHT = 32
ROUNDS = 5
SDK_PYTHON = Path(__file__).resolve().parents[1] / ".venv-foreign" / "bin" / "python"
SYSTEM, USER = "Answer with one JSON object.", json.dumps({"task": "plan", "text": "node-1 is down " * 200})
SCHEMA = {
    "type": "object",
    "properties": {"searches": {"type": "array", "items": {"type": "string"}}},
    "required": ["searches"],
    "additionalProperties": False,
}
REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1793520000,
    "model": "model-1",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": '{"searches":[]}'}}],
    "usage": {"prompt_tokens": 812, "completion_tokens": 7, "total_tokens": 819},
}


async def serve() -> None:
    """Answer every request at once, until standard input ends; the first line printed is the port."""
    body = json.dumps(REPLY).encode()
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(size.partition(b":")[2]))
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def cpu_ms_of(call: Callable[[], Awaitable[object]]) -> float:
    """Return the CPU of one call in milliseconds, over many with some in flight."""
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def one() -> None:
        async with slots:
            await call()

    await asyncio.gather(*(one() for _ in range(IN_FLIGHT)))
    begin = time.process_time()
    await asyncio.gather(*(one() for _ in range(CALLS)))
    return (time.process_time() - begin) * 1000 / CALLS


async def ours(url: str) -> float:
    """Measure the provider: from the request of a stage to the reply that is read."""
    from casebound.testing.scripted import model_request
    from casebound_llm_openai.provider import OpenAIProvider
    from casebound_llm_openai.settings import OpenAISettings

    provider = OpenAIProvider(OpenAISettings(base_url=url))
    request = model_request(provider="openai", system=SYSTEM, user=USER, response_schema=SCHEMA)

    async def call() -> None:
        assert provider.read(await provider.send(request)).text == '{"searches":[]}'

    try:
        return await cpu_ms_of(call)
    finally:
        await provider.aclose()


async def sdk(url: str) -> float:
    """Measure the SDK: the same request, and the text of its reply."""
    from openai import AsyncOpenAI

    form = {"type": "json_schema", "json_schema": {"name": "plan", "strict": True, "schema": SCHEMA}}
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
    async with AsyncOpenAI(base_url=url, api_key="sk-bench", max_retries=0) as client:

        async def call() -> None:
            reply = await client.chat.completions.create(
                model="model-1", messages=messages, max_completion_tokens=64, response_format=form
            )
            assert reply.choices[0].message.content == '{"searches":[]}'

        return await cpu_ms_of(call)


def measured(python: str, side: str, url: str) -> float:
    """Return what one side needs for a call, measured in a process of its own."""
    ran = subprocess.run([python, __file__, side, url], capture_output=True, text=True, check=True)
    return float(ran.stdout)


def main() -> None:
    """Measure both in turn and print."""
    command = [sys.executable, __file__, "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        times: dict[str, list[float]] = {"ours": [], "sdk": []}
        for _ in range(ROUNDS):
            times["ours"].append(measured(sys.executable, "ours", url))
            times["sdk"].append(measured(str(SDK_PYTHON), "sdk", url))
        server.communicate()
    own, peer = (statistics.median(times[side]) for side in ("ours", "sdk"))
    figures = {"cpu_ms_a_call": round(own, 2), "sdk_cpu_ms_a_call": round(peer, 2), "ratio": round(own / peer, 2)}
    print(json.dumps({"provider_cpu": {**figures, "bound": 1.0}}))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
    elif len(sys.argv) == 3:
        print(asyncio.run({"ours": ours, "sdk": sdk}[sys.argv[1]](sys.argv[2])))
    else:
        main()
