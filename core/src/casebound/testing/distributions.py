"""Small real distributions in a folder: a module and its metadata, found by entry points like installed ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from casebound.installed import Installed, installed_plugins


def write_distribution(
    folder: Path, name: str, source: str, *, version: str = "1.0", plugin: str | None = None, module: str | None = None
) -> str:
    """Write a distribution `name` with one module into `folder`; return the module's name.

    Args:
        folder: where it goes; put it on `sys.path` or `PYTHONPATH`.
        name: of the distribution.
        source: of the module.
        version: of the distribution.
        plugin: name of the entry point; None: `name` without its `casebound-`.
        module: name of the module; None: `name` with underscores.
    """
    module = module or name.replace("-", "_")
    plugin = plugin or name.removeprefix("casebound-")
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nA test.\n")
    (metadata / "entry_points.txt").write_text(f"[casebound]\n{plugin} = {module}\n")
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    return module


def plugins_in(folder: Path) -> tuple[Installed, ...]:
    """Return the plugins of the distributions in `folder`, and of no other."""
    return installed_plugins([str(folder)])


def run_casebound(
    arguments: Sequence[str],
    *,
    plugins: Path | None = None,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    python: Sequence[str] = (),
    timeout_s: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own, as a user would.

    Args:
        arguments: of `casebound`.
        plugins: a folder of distributions to put on its path.
        cwd: where it runs.
        environment: further variables.
        python: options of the interpreter, such as `-X importtime`.
        timeout_s: seconds after which the test fails.
    """
    variables = {**os.environ, **(environment or {})}
    if plugins is not None:
        variables["PYTHONPATH"] = os.pathsep.join(part for part in (str(plugins), variables.get("PYTHONPATH")) if part)
    command = [sys.executable, "-P", *python, "-m", "casebound", *arguments]
    return subprocess.run(  # noqa: S603  # this interpreter
        command, cwd=cwd, env=variables, capture_output=True, encoding="utf-8", timeout=timeout_s, check=False
    )


def listen_to_ctrl_c() -> None:
    """Make a child take SIGINT as in a terminal (`preexec_fn`): a background job inherits that it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
