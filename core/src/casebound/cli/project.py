"""`init` and `doctor`: starting a project, and finding out why it does not run."""

from __future__ import annotations

from pathlib import Path

import click

from casebound.cli.common import debug_option, format_option, print_json, print_text, settings_options

MARKS = {"ok": "ok    ", "failed": "FAILED", "skipped": "-     ", "warning": "warn  "}


@click.command(help="Write casebound.toml into DIR (default: here), to start from.")
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), default=Path())
@click.option(
    "--from",
    "plugin",
    metavar="PLUGIN",
    help="Whose settings text to write, where several plugins have one; `none`: a neutral one.",
)
@debug_option
def init(folder: Path, plugin: str | None) -> None:
    """Write a settings file; one that is there is never touched."""
    from casebound.project_start import write_settings

    print_text(str(write_settings(folder, plugin=plugin)))


@click.command(
    help="Check plugins, settings, database and models, whose servers are not contacted; status 1 if anything fails."
)
@settings_options
@format_option
@click.option(
    "--timeout",
    "timeout_s",
    type=click.IntRange(1, 600),
    default=20,
    show_default=True,
    help="Seconds that a plugin may take to load.",
)
@debug_option
def doctor(project_config: Path | None, llm_config: Path | None, as_json: bool, timeout_s: int) -> int:
    """Check everything that a run would need, and send nothing to a model."""
    from casebound.doctor import examine

    checks = examine(project_config, llm_config=llm_config, timeout_s=timeout_s)
    if as_json:
        print_json({"checks": [{"name": c.name, "status": c.status, "detail": c.detail} for c in checks]})
    else:
        for check in checks:
            head, *rest = (check.detail or "").splitlines() or [""]
            print_text(f"{MARKS[check.status]}  {check.name}{': ' if head else ''}{head}")
            for line in rest:
                print_text(f"          {line}")
    return 1 if any(check.status == "failed" for check in checks) else 0
