import subprocess
import sys


def test_listing_the_readers_imports_nothing_heavy():
    script = "import casebound.intake.builtin, sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    modules = set(done.stdout.split())
    assert "casebound.specs" in modules
    assert {"pydantic", "sqlalchemy", "casebound.contracts", "casebound.intake.readers"} & modules == set()
