"""What the tests of live runs share: a benchmark's bundle that its author approved."""

import shutil
from pathlib import Path

import pytest
from casebound.testing.live_trial import LiveTrial


@pytest.fixture(scope="session")
def approved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with that bundle; nobody writes there."""
    trial = LiveTrial(tmp_path_factory.mktemp("approved"))
    trial.write_bundle()
    return trial.folder


@pytest.fixture
def trial(tmp_path: Path, approved: Path) -> LiveTrial:
    """A copy of it, for one test."""
    shutil.copytree(approved, tmp_path / "trial")
    return LiveTrial(tmp_path / "trial")
