"""The pytest plugin of casebound; it imports nothing of casebound, so that coverage sees every import.

- `casebound_loopback_only = true` (off unless set): no test reaches anything but this machine. An attempt fails the
  test even where the code under test swallows the error.
- Under `CASEBOUND_REQUIRE_SERVICES=1` a test that skips fails, unless its reason begins with `capability`: what a
  conformance suite declares absent.
- The marker `spec("A-011")` names the rows of the checklist that a test proves.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

REQUIRE = "CASEBOUND_REQUIRE_SERVICES"
MAY_SKIP = "capability"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option."""
    parser.addini("casebound_loopback_only", "Tests reach nothing but this machine.", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers that conformance suites use."""
    config.addinivalue_line("markers", "spec(*rows): the rows of the checklist that this test proves")
    config.addinivalue_line("markers", "faults: breaks things on purpose (processes, files, connections)")


# --- the network ----------------------------------------------------------------------------------------------------


def is_local(address: object) -> bool:
    """Tell whether a socket address stays on this machine: a path, or a loopback host."""
    if not isinstance(address, tuple):
        return True
    host = address[0]
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host in (None, "", "localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True)
def _casebound_loopback_only(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not request.config.getini("casebound_loopback_only"):
        yield
        return
    refused: list[str] = []

    def guard(owner: object, name: str, place: int) -> None:
        original: Callable[..., Any] = getattr(owner, name)

        def guarded(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # whatever the original takes
            address = args[place] if len(args) > abs(place) or place < 0 else None
            if not is_local(address if name != "getaddrinfo" else (address, 0)):
                refused.append(f"{name}({address!r})")
                raise OSError(f"tests reach nothing but this machine: {refused[-1]}")
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, guarded)

    guard(socket.socket, "connect", 1)
    guard(socket.socket, "connect_ex", 1)
    guard(socket.socket, "sendto", -1)
    guard(socket, "getaddrinfo", 0)
    yield
    if refused:
        pytest.fail("reached for the network: " + ", ".join(refused))


# --- skipping -------------------------------------------------------------------------------------------------------


def _must_not_skip(reason: str) -> bool:
    return os.environ.get(REQUIRE) == "1" and not reason.removeprefix("Skipped: ").startswith(MAY_SKIP)


def _reason(longrepr: object) -> str:
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where everything has to run."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and _must_not_skip(_reason(report.longrepr)):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} may not skip under {REQUIRE}=1: {_reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn the skip of a whole module into a failure where everything has to run."""
    report = yield
    if report.outcome == "skipped" and _must_not_skip(_reason(report.longrepr)):
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} may not skip under {REQUIRE}=1: {_reason(report.longrepr)}"
    return report
