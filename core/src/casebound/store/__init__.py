"""A package on disk: where everything lies, how it is created once, how it is loaded (bytes first)."""

from casebound.store.package import Package
from casebound.store.workspace import Workspace

__all__ = ["Package", "Workspace"]
