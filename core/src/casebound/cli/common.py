"""What commands share: their options, and how an answer is printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])

_FILE = click.Path(path_type=Path)


def settings_options(function: F) -> F:
    """Add `--project-config` (alias `--project`) and `--llm-config`: arguments `project_config` and `llm_config`."""
    function = click.option(
        "--llm-config", type=_FILE, help="A TOML file whose [llm] table replaces that of the settings."
    )(function)
    return click.option(
        "--project-config",
        "--project",
        "project_config",
        type=_FILE,
        help="The settings; default: the nearest casebound.toml upwards.",
    )(function)


def workspace_option(function: F) -> F:
    """Add `--workspace`: argument `workspace`, None where it is not given."""
    return click.option("--workspace", type=_FILE, help="The folder that holds the cases.")(function)


def format_option(function: F) -> F:
    """Add `--format text|json`: argument `as_json`."""
    return click.option(
        "--format",
        "as_json",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="For a person or for a program.",
        callback=lambda _ctx, _option, value: value == "json",
    )(function)


def debug_option(function: F) -> F:
    """Add `--debug`, which `casebound.cli.program` reads by itself."""
    return click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")(function)


def print_json(value: object) -> None:
    """Print one line of canonical JSON, as UTF-8 whatever the locale."""
    from casebound.canonical import canonical_bytes

    click.echo(canonical_bytes(value))


def print_text(text: str) -> None:
    """Print text whose signs a terminal may not be able to show: what it cannot becomes an escape."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))


def print_note(text: str) -> None:
    """Print a message to standard error."""
    click.echo(text, err=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: drawn on a terminal, else plain columns. Cells are data: peculiar characters become visible."""
    from casebound.text import visible

    cells = [[visible(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw_table(columns, cells)
        return
    widths = [max(len(line[index]) for line in (columns, *cells)) for index in range(len(columns))]
    for line in (columns, *cells):
        print_text("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _draw_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text: no markup in data
    Console().print(table)
