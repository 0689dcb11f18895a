"""What the guide on runs promises is what the command takes and prints."""

from __future__ import annotations

import re
from pathlib import Path

import casebound.cli.run
import click
from casebound.workspace.outcome import RunSummary

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "run.md").read_text(encoding="utf-8")
EVERYWHERE = {"--project-config", "--project", "--llm-config", "--workspace", "--debug"}


def test_the_guide_has_a_row_for_every_option():
    rows = re.findall(r"^\| (`--.*?) \|", GUIDE, re.MULTILINE)
    listed = set(re.findall(r"`(--[a-z-]+)", " ".join(rows)))
    options = [one for one in casebound.cli.run.run.params if isinstance(one, click.Option) and not one.hidden]
    assert listed == {name for one in options for name in one.opts} - EVERYWHERE


def test_the_guide_has_a_row_for_every_key_of_the_sum():
    summary = RunSummary({}, 0, 0, 0, 0, 0, 0, None, None, (), 0, error="…")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", GUIDE, re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(rows)) == list(summary.to_json())
