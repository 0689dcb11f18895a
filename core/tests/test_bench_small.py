"""The benchmark for tests passes the suite of real ones."""

import pytest
from casebound.testing.conformance.benchmark import BenchmarkConformance
from casebound.testing.small_benchmark import reply, small_host


class TestSmall(BenchmarkConformance):
    name = "small"

    @pytest.fixture
    def host(self):
        return small_host()

    def reply(self, given, assessment):
        return reply(assessment, given["second"]["noteId"])
