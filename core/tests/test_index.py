"""The index in its own SQLite file."""

from __future__ import annotations

from pathlib import Path

import pytest
from casebound.testing.index_place import IndexPlace
from casebound.testing.index_suite import IndexSuite


class TestIndexFile(IndexSuite):
    @pytest.fixture
    def place(self, tmp_path: Path) -> IndexPlace:
        return IndexPlace.write(tmp_path)
