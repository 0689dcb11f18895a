"""Where the index of a workspace is, for whoever only wants to know whether there is one."""

from __future__ import annotations

import os
from pathlib import Path

from casebound.settings import Settings
from casebound.store import Workspace

FILE = "index.sqlite"


def own_file(workspace: Workspace) -> Path:
    """Return the file of the index where the settings name no URL."""
    return workspace.root / FILE


def is_used(workspace: Workspace, settings: Settings) -> bool:
    """Tell whether the workspace has an index; until somebody imports or runs many cases it has none."""
    table = settings.workspace
    return bool(table.index_url or table.index_url_env) or os.path.lexists(own_file(workspace))
