"""The program as a whole: what it imports, how it ends, and what broken plugins may not do to it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from casebound import __version__
from casebound.cli.program import HOMES, program
from casebound.commands import CORE_COMMANDS
from casebound.testing.distributions import listen_to_ctrl_c, run_casebound, write_distribution
from click.testing import CliRunner

HEAD = "from casebound.hookspecs import hookimpl\nfrom casebound.specs import *\n@hookimpl\n"
PROVIDER = HEAD + "def casebound_providers():\n    return [ProviderSpec({0!r}, 'casebound_{0}:S', 'casebound_{0}:P')]\n"
HEAVY = {
    "pydantic",
    "sqlalchemy",
    "rich",
    "jsonschema",
    "httpx",
    "aiohttp",
    "jinja2",
    "tomli",
    "importlib.metadata",
    "asyncio",
}
CANARY = "cAnArY-5e1f"

BROKEN = {
    "casebound-raises": "raise ValueError('boom')",
    "casebound-exits": "import sys; sys.exit(0)",
    "casebound-needs": "import no_such_module_here",
}


def imported(arguments: list[str], plugins: Path | None = None) -> set[str]:
    """Return the modules that a process has loaded when it has done `casebound ARGUMENTS`."""
    program = f"""if True:
        import sys
        sys.argv = ["casebound", *{arguments!r}]
        from casebound.__main__ import main
        status = main()
        sys.stderr.write(" ".join(sys.modules))
        sys.exit(status)
    """
    environment = {**os.environ, **({"PYTHONPATH": str(plugins)} if plugins else {})}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_version_imports_nothing_but_the_package():
    ours = {name for name in imported(["--version"]) if name.partition(".")[0] in ("casebound", "click", "pluggy")}
    assert ours == {"casebound", "casebound.__main__"}
    assert run_casebound(["--version"]).stdout == f"casebound {__version__}\n"


def test_help_imports_the_parser_and_no_command():
    names = imported(["--help"])
    assert not names & (HEAVY | {"pluggy"})
    ours = {name for name in names if name.startswith("casebound")} - {"casebound.__main__"}
    assert ours == {
        "casebound",
        "casebound.cli",
        "casebound.cli.program",
        "casebound.commands",
        "casebound.errors",
    }


def test_listing_plugins_imports_no_library_of_the_engine(tmp_path):
    write_distribution(tmp_path, "casebound-echo", PROVIDER.format("echo"))
    names = imported(["plugins"], tmp_path)
    assert not names & HEAVY
    assert "casebound.settings" not in names
    assert "casebound_echo" in names


def test_help_lists_every_command_with_its_line():
    done = run_casebound(["--help"])
    assert list(HOMES) == list(CORE_COMMANDS)
    for name, line in CORE_COMMANDS.items():
        assert re.search(rf"^  {name}\s+{re.escape(line)}$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("name", list(HOMES))
def test_every_command_can_say_what_it_takes(name):
    done = CliRunner().invoke(program, [name, "--help"])
    assert done.exit_code == 0, done.output
    assert "--help" in done.output


@pytest.mark.parametrize(
    "arguments", [["nope"], ["plugins", "--nope"], ["catalogs", "search"], ["doctor", "--timeout", "x"]]
)
def test_a_command_line_that_nobody_understands_ends_with_two(arguments):
    done = run_casebound(arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("Error:") == 1
    assert "Traceback" not in done.stderr


# --- plugins --------------------------------------------------------------------------------------------------------


def test_broken_plugins_are_listed_with_their_owner_and_the_rest_works(tmp_path):
    for name, source in BROKEN.items():
        write_distribution(tmp_path, name, source, version="2.5")
    write_distribution(tmp_path, "casebound-echo", PROVIDER.format("echo"))
    done = run_casebound(["plugins", "--format", "json"], plugins=tmp_path)
    assert done.returncode == 0
    rows = {row["name"]: row for row in json.loads(done.stdout)["plugins"]}
    assert set(rows["echo"]) == {"name", "distribution", "version", "offers", "error"}
    assert rows["echo"]["offers"] == {"providers": ["echo"]}
    assert rows["echo"]["error"] is None
    for name, said in (("raises", "ValueError: boom"), ("exits", "SystemExit: 0"), ("needs", "no_such_module_here")):
        row = rows[name]
        assert (row["distribution"], row["version"], row["offers"]) == (f"casebound-{name}", "2.5", {})
        assert said in row["error"]
        assert "Traceback" in row["error"]
    text = run_casebound(["plugins"], plugins=tmp_path)
    assert (text.returncode, "ValueError: boom" in text.stdout) == (0, True)
    assert run_casebound(["protocols"], plugins=tmp_path).returncode == 0


def test_a_clash_names_both_and_a_run_that_needs_the_name_refuses(tmp_path):
    folder = tmp_path / "plugins"
    write_distribution(folder, "casebound-a", PROVIDER.format("same"), version="1.1")
    write_distribution(folder, "casebound-b", PROVIDER.format("same"), version="2.2")
    (tmp_path / "casebound.toml").write_text('[project]\nname = "p"\n[llm]\nprovider = "same"\n')
    listed = run_casebound(["plugins", "--format", "json"], plugins=folder, cwd=tmp_path)
    assert listed.returncode == 0
    errors = [row["error"] for row in json.loads(listed.stdout)["plugins"] if row["error"]]
    assert len(errors) == 2
    assert all("casebound-a 1.1" in error and "casebound-b 2.2" in error for error in errors)
    done = run_casebound(["doctor", "--format", "json"], plugins=folder, cwd=tmp_path)
    assert done.returncode == 1
    failed = [check for check in json.loads(done.stdout)["checks"] if check["status"] == "failed"]
    assert failed
    assert "casebound-a 1.1" in failed[0]["detail"]
    assert "casebound-b 2.2" in failed[0]["detail"]


def test_doctor_finds_a_plugin_that_hangs_and_one_that_kills_its_process(tmp_path):
    write_distribution(tmp_path, "casebound-hangs", "while True: pass")
    write_distribution(tmp_path, "casebound-dies", "import os; os._exit(7)")
    write_distribution(tmp_path, "casebound-echo", PROVIDER.format("echo"))
    for name, source in BROKEN.items():
        write_distribution(tmp_path, name, source)
    done = run_casebound(["doctor", "--format", "json", "--timeout", "8"], plugins=tmp_path, cwd=tmp_path)
    assert done.returncode == 1
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["plugin echo"]["status"] == "ok"
    assert "within 8 seconds" in checks["plugin hangs"]["detail"]
    assert "status 7" in checks["plugin dies"]["detail"]
    assert "ValueError: boom" in checks["plugin raises"]["detail"]
    assert checks["settings"]["status"] == "skipped"


def test_a_command_of_a_plugin_runs_by_its_name(tmp_path):
    source = HEAD + (
        "def casebound_commands():\n    return [Command('greet', 'Say hello.', 'casebound_greet:group')]\n"
        "import click\n@click.command()\ndef group():\n    click.echo('hello')\n"
    )
    write_distribution(tmp_path, "casebound-greet", source)
    done = run_casebound(["greet"], plugins=tmp_path)
    assert (done.returncode, done.stdout) == (0, "hello\n")


# --- how a command ends ---------------------------------------------------------------------------------------------


def test_secrets_stay_out_of_every_message(tmp_path):
    source = "import os\nraise ValueError('mysql://u:hunter22@h/d ' + os.environ['T_API_KEY'])\n"
    write_distribution(tmp_path, "casebound-leak", source)
    (tmp_path / "casebound.toml").write_text(f'[project]\nname="p"\n[llm]\nprovider = "x"\nkey = "{CANARY}"\n')
    for arguments in (["plugins"], ["doctor"], ["doctor", "--debug"], ["catalogs", "list", "--debug"]):
        done = run_casebound(arguments, plugins=tmp_path, cwd=tmp_path, environment={"T_API_KEY": CANARY})
        assert CANARY not in done.stdout + done.stderr
        assert "hunter22@" not in done.stdout + done.stderr


def test_only_debug_shows_a_traceback(tmp_path):
    plain = run_casebound(["catalogs", "list", "--project-config", str(tmp_path / "none.toml")])
    assert (plain.returncode, plain.stdout) == (2, "")
    assert plain.stderr.startswith("SETTINGS_FILE: ")
    assert "Traceback" not in plain.stderr
    debug = run_casebound(["catalogs", "list", "--project-config", str(tmp_path / "none.toml"), "--debug"])
    assert (debug.returncode, "Traceback" in debug.stderr) == (2, True)


def test_a_bug_ends_as_one_message(monkeypatch, capsys):
    from casebound.cli.program import run

    monkeypatch.setattr("casebound.cli.plugins.build_host", lambda: 1 / 0)
    assert run(["plugins"]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("CONTRACT_BROKEN: ")
    assert "ZeroDivisionError" in shown.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="capability: no /dev/full here")
def test_a_full_disk_ends_with_one_message():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "casebound", "plugins"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.startswith("OUTPUT_WRITE: ")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_pipe_that_closes_ends_quietly(tmp_path):
    kinds = {
        "runners": "Runner('p%d', 'm:f')",
        "demos": "Demo('p%d', 'm:f')",
        "rules": "RuleSet('p%d', 'm:f')",
    }
    source = "".join(
        HEAD.partition("@")[0] + f"@hookimpl\ndef casebound_{kind}():\n    return [{offer} for n in range(9000)]\n"
        for kind, offer in ((kind, offer.replace("'p%d'", "f'p{n}'")) for kind, offer in kinds.items())
    )
    write_distribution(tmp_path, "casebound-many", source)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "casebound", "plugins"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 1


def test_ctrl_c_ends_with_its_own_status(tmp_path):
    source = "import sys, time\nsys.stderr.write('loading\\n'); sys.stderr.flush()\nwhile True: time.sleep(0.01)\n"
    write_distribution(tmp_path, "casebound-slow", source)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "casebound", "plugins"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        preexec_fn=listen_to_ctrl_c,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == b"loading\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (130, b"", b"\n")  # the line end closes the terminal's ^C


def test_output_survives_a_narrow_locale(tmp_path):
    offer = "CatalogOffer(catalogs=(Catalog('a.b', 'ж\u202e', 'таблица', 'id', 'n', ('id', 'n')),))"
    write_distribution(tmp_path, "casebound-cyr", HEAD + f"def casebound_catalogs():\n    return [{offer}]\n")
    narrow = {"PYTHONIOENCODING": "ascii"}
    done = run_casebound(["catalogs", "list"], plugins=tmp_path, cwd=tmp_path, environment=narrow)
    assert done.returncode == 0, done.stderr
    assert "\\u0442" in done.stdout
    wide = run_casebound(
        ["catalogs", "list"], plugins=tmp_path, cwd=tmp_path, environment={"PYTHONIOENCODING": "utf-8"}
    )
    assert "таблица" in wide.stdout
    assert "\u202e" not in wide.stdout
