import subprocess
import sys

import casebound.intake


def test_listing_the_readers_imports_nothing_heavy():
    script = "import casebound.intake.builtin, sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    modules = set(done.stdout.split())
    assert "casebound.specs" in modules
    assert {"pydantic", "sqlalchemy", "casebound.contracts", "casebound.intake.readers"} & modules == set()


def test_every_public_name_loads_and_is_no_module():
    for name in casebound.intake.__all__:
        value = getattr(casebound.intake, name)
        assert type(value) is not type(sys), name
    assert sorted(casebound.intake._HOMES) == sorted(casebound.intake.__all__)
