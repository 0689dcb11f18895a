"""The group of all commands, and how any of them ends.

Rules:
- A command's module is imported when the command runs; `--help` needs none of them.
- An error is printed once, to standard error, as its message says it; only `--debug` shows a traceback.
- Exit status: 0 done; 1 something failed or waits; 2 usage or settings; 3 unavailable from outside; 130 interrupted.
- A pipe that closes, Ctrl-C and a full disk end a command cleanly.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from casebound import __version__
from casebound.commands import CORE_COMMANDS
from casebound.errors import CaseboundError, PluginError

FAILED, USAGE, INTERRUPTED = 1, 2, 130

# Where each command lives, under its own name or that behind the colon; what it is for stands in `casebound.commands`.
HOMES: dict[str, str] = {
    "init": "casebound.cli.project",
    "doctor": "casebound.cli.project",
    "plugins": "casebound.cli.plugins",
    "protocols": "casebound.cli.plugins",
    "catalogs": "casebound.cli.catalogs",
    "resolve": "casebound.cli.cases",
    "import": "casebound.cli.importing:import_reports",
    "run": "casebound.cli.run",
    "status": "casebound.cli.workspace",
    "show": "casebound.cli.cases",
    "resume": "casebound.cli.cases",
    "revise": "casebound.cli.cases",
    "explain": "casebound.cli.cases",
    "verify": "casebound.cli.cases",
    "reindex": "casebound.cli.workspace",
    "record": "casebound.cli.replies",
    "rehearse": "casebound.cli.replies",
    "bench": "casebound.cli.bench",
    "demo": "casebound.cli.cases",
}


class Program(click.Group):
    """All commands of core by table, those of plugins through the host when one is asked for by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of core's commands."""
        return list(HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command of core, or of a plugin; None where nobody has it."""
        home = HOMES.get(cmd_name)
        if home is not None:
            module, _, attribute = home.partition(":")
            command = getattr(import_module(module), attribute or cmd_name)
            assert isinstance(command, click.Command)  # noqa: S101  # our own table
            return command
        return _plugin_command(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, CORE_COMMANDS[name]) for name in HOMES])


def _plugin_command(name: str) -> click.Command | None:
    from casebound.host import build_host

    host = build_host()
    commands = host.index("commands")
    if name not in commands and name not in commands.clashes:
        return None
    command = host.load_named("commands", name, commands[name].group)
    if not isinstance(command, click.Command):
        owner = host.distribution_of("commands", name)
        raise PluginError("PLUGIN_OFFER", found=f"command {name} is no click command", where=str(owner))
    return command


@click.group(
    cls=Program,
    epilog="Plugins may add commands: `casebound plugins` lists what they offer.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="casebound %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def program(debug: bool) -> None:
    """Find the rows of your own database that a written report is about, and show what exactly says so."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line; return its exit status. Nothing but a request to end the process is raised."""
    debug = "--debug" in arguments
    try:
        status = program.main(list(arguments), prog_name="casebound", standalone_mode=False, obj=debug)
        sys.stdout.flush()
    except click.ClickException as exc:
        exc.show(sys.stderr)
        return exc.exit_code
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        _close_standard_output()
        return FAILED
    except CaseboundError as exc:
        return _report(str(exc), exc.exit_status, debug)
    except OSError as exc:
        if exc.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            return _report(_unexpected(exc), FAILED, debug)
        _close_standard_output()
        return _report(str(_full(exc)), FAILED, debug)
    except Exception as exc:  # noqa: BLE001  # the last border: a bug of ours ends as a message too
        return _report(_unexpected(exc), FAILED, debug)
    return status if isinstance(status, int) else 0


def _full(exc: OSError) -> CaseboundError:
    return CaseboundError("OUTPUT_WRITE", found=exc.strerror, path=exc.filename)


def _unexpected(exc: Exception) -> str:
    from casebound.settings import redact_environment

    found = redact_environment(f"{type(exc).__name__}: {exc}".strip().splitlines()[0])
    return str(CaseboundError("CONTRACT_BROKEN", found=found, hint="report this as a bug, with what --debug shows"))


def _report(message: str, status: int, debug: bool) -> int:
    """Print an error once; where even that is impossible, the exit status has to do."""
    from casebound.text import visible

    try:
        if debug:
            import traceback

            from casebound.settings import redact_environment

            sys.stderr.write(redact_environment(traceback.format_exc()))
        sys.stderr.write(visible(message, keep="\n\t") + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # standard error is gone too; the exit status still tells
    return status


def _close_standard_output() -> None:
    """Point standard output nowhere, so that the interpreter's last flush cannot fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):
        pass  # it has no descriptor, or a closed one: then nothing is left to fail
    finally:
        os.close(nowhere)
