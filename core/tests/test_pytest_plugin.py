"""The pytest plugin, tried on small suites in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from casebound.testing.pytest_plugin import is_local


def run(folder: Path, source: str, *, option: bool = True, require: bool = False) -> str:
    (folder / "test_inner.py").write_text(source)
    (folder / "pytest.ini").write_text(f"[pytest]\ncasebound_loopback_only = {'true' if option else 'false'}\n")
    environment = {**os.environ, "CASEBOUND_REQUIRE_SERVICES": "1" if require else ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", str(folder)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.stdout.splitlines()[-1] + "\n" + done.stdout


REACHES = """
import socket, pytest
def test_reaches():
    try:
        socket.create_connection(("{}", 9), timeout=0.2)
    except OSError:
        pass  # swallowed, as careless code would
"""


@pytest.mark.parametrize("host", ["192.0.2.1", "example.invalid", "2001:db8::1"])
def test_reaching_for_the_network_fails_even_where_the_error_is_swallowed(tmp_path, host):
    output = run(tmp_path, REACHES.format(host))
    assert "1 error" in output.splitlines()[0]
    assert "reached for the network" in output


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_this_machine_may_be_reached(tmp_path, host):
    assert run(tmp_path, REACHES.format(host)).splitlines()[0].startswith("1 passed")


def test_other_projects_are_left_alone(tmp_path):
    source = "import socket\ndef test_it():\n    assert 'guarded' not in socket.getaddrinfo.__qualname__\n"
    assert run(tmp_path, source, option=False).splitlines()[0].startswith("1 passed")


SKIPS = """
import pytest
@pytest.mark.skip(reason="no server")
def test_marked(): ...
def test_called():
    pytest.skip("no server")
@pytest.mark.spec("A-001")
def test_capability():
    pytest.skip("capability: no schema")
@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    assert False
"""


def test_nothing_may_skip_where_everything_has_to_run(tmp_path):
    assert run(tmp_path, SKIPS).splitlines()[0].startswith("3 skipped, 1 xfailed")
    output = run(tmp_path, SKIPS, require=True)
    assert output.splitlines()[0].startswith("1 failed, 1 skipped, 1 xfailed, 1 error")
    assert "may not skip" in output


def test_a_module_that_skips_as_a_whole_fails_too(tmp_path):
    source = "import pytest\npytest.importorskip('no_such_module_here')\n"
    assert "1 error" in run(tmp_path, source, require=True).splitlines()[0]


@pytest.mark.parametrize(
    ("address", "local"),
    [
        (("127.0.0.1", 1), True),
        (("127.9.9.9", 1), True),
        (("::1", 1, 0, 0), True),
        ("/run/socket", True),
        (b"/run/socket", True),
        (("10.0.0.1", 1), False),
        (("0.0.0.0", 1), False),
        (("localhost.example", 1), False),
        ((b"example.com", 1), False),
    ],
)
def test_what_counts_as_this_machine(address, local):
    assert is_local(address) is local
