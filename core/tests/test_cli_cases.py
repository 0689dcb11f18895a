"""Printing one of several results."""

from __future__ import annotations

import json

from casebound.cli.cases import _told
from casebound.result import Result


def result(**facts):
    return Result(report="r1.md", case_id="C", package="p", state="interpreted", code=None, resolver=None, **facts)


def test_a_result_that_cannot_be_printed_does_not_end_the_others(capfd):
    statuses = [_told(each, True, "") for each in (result(tokens={"input": 2**60, "output": 1}), result())]
    printed = capfd.readouterr()
    assert statuses == [1, 0]
    assert json.loads(printed.out)["report"] == "r1.md"
    assert "CONTRACT_JSON" in printed.err
    assert "r1.md" in printed.err
