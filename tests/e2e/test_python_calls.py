"""The Python calls behind the commands, as a script or a notebook writes them; each name stays what it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import casebound
import pytest
from casebound.testing.inventory import write_inventory
from casebound.testing.inventory_command import behave, install_inventory
from casebound.testing.inventory_model import InventoryModel

SCRIPT = """if True:
    import casebound, sys
    for _ in range(2):  # the second time every module behind a name has been imported
        [result] = casebound.resolve("report.md")
        assert result.state == "interpreted", result
        assert casebound.show("INC-7")["plan"] is not None
        assert casebound.explain("INC-7").searches
        assert casebound.resume("INC-7").succeeded
        assert casebound.revise("INC-7").succeeded
        assert casebound.verify(result.package)
"""


def test_every_call_works_twice_in_one_process(tmp_path: Path) -> None:
    project = write_inventory(tmp_path / "project", settings=behave("answer"))
    sys_path = str(install_inventory(tmp_path / "plugins"))
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {sys_path!r})\n{SCRIPT}"],
        cwd=project.folder,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("wrong", [["a", "b"], None, 7])
def test_what_is_no_path_is_told_so(tmp_path: Path, wrong: object) -> None:
    inventory = write_inventory(tmp_path)
    calls = [
        lambda: casebound.verify(wrong),
        lambda: inventory.project(InventoryModel()).resolve([wrong]),
        lambda: inventory.project(InventoryModel()).resolve("report.md"),
    ]
    for call in calls:
        with pytest.raises(casebound.CaseboundError) as caught:
            call()
        assert caught.value.code == "USAGE"
    assert not inventory.workspace.exists()


def test_no_module_has_the_name_of_a_call() -> None:
    import casebound

    folder = Path(casebound.__file__).parent
    modules = {path.stem for path in folder.iterdir()}
    assert not modules & set(casebound.__all__)
