"""A database of its own on each server, for a test module."""

import pytest
from casebound.testing.servers import running_server


@pytest.fixture(scope="module")
def mariadb():
    with running_server("mariadb") as server:
        yield server


@pytest.fixture(scope="module")
def postgresql():
    with running_server("postgresql") as server:
        yield server


@pytest.fixture(params=["mariadb", "postgresql"])
def server(request):
    return request.getfixturevalue(request.param)
