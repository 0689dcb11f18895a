"""What commands share: their options, and how an answer is printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from casebound.render.tree import Node
    from casebound.store.package import Package

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


def replay_option(function: F) -> F:
    """Add `--replay-from`: argument `replay_from`, None where it is not given."""
    return click.option(
        "--replay-from",
        type=_FILE,
        metavar="FILE|PACKAGE",
        help="Let the recorded replies of a file or a package answer; no model is asked.",
    )(function)


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


def debugging() -> bool:
    """Tell whether the command was given `--debug`."""
    return click.get_current_context().find_root().obj is True


def print_json(value: object) -> None:
    """Print one line of canonical JSON, as UTF-8 whatever the locale."""
    from casebound.canonical import canonical_bytes

    click.echo(canonical_bytes(value))


def print_text(text: str, output: TextIO | None = None) -> None:
    """Print text whose signs a terminal may not be able to show: what it cannot becomes an escape.

    Args:
        text: the text.
        output: where to; None: standard output.
    """
    output = output or sys.stdout
    encoding = getattr(output, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), file=output)


def print_note(text: str) -> None:
    """Print a message to standard error; peculiar characters in it become visible."""
    from casebound.text import visible

    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    told = visible(text, keep="\n\t").encode(encoding, "backslashreplace").decode(encoding)
    if sys.stderr is not None:  # not by click, which would write past a live picture, and into it
        sys.stderr.write(f"{told}\n")
        sys.stderr.flush()


def print_nodes(nodes: Iterable[Node]) -> None:
    """Draw a picture: by rich on a terminal, else as plain text, in ASCII where the encoding has no lines to draw."""
    from casebound.render.tree import ASCII_LINES, LINES, plain, print_rich

    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    if sys.stdout.isatty() and encoding.startswith("utf"):
        print_rich(nodes)
        return
    print_text(plain(nodes, LINES if _can_show("".join(LINES), encoding) else ASCII_LINES))


def _can_show(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


Report = Callable[["Package", str], None]


@contextmanager
def progress() -> Iterator[Report]:
    """Give what is to be called with package and step while work goes on; it tells a person on standard error.

    A terminal shows one line that changes and then goes away; a pipe gets one line a step. Print no answer inside: what
    a plugin prints goes to standard error.
    """
    if not sys.stderr.isatty():
        with redirect_stdout(sys.stderr):
            yield lambda package, step: print_note(f"{package.root.name}: {step}")
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text("starting")) as status, redirect_stdout(sys.stderr):
        yield lambda package, step: status.update(Text(f"{package.root.name}: {step}"))


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

    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")  # a name is wrapped, never cut
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text: no markup in data
    Console().print(table)
