"""The inventory project for tests of the command line: settings say how its provider behaves.

`install_inventory` writes a distribution; `[llm.scripted] behaviour` is `answer` (validly), `nonsense` (text that is no
JSON), `hang` (for ever, after the line `hanging` on standard error), or a code such as `LLM_QUOTA`, which is raised.
Each request adds a line with its stage to `calls.log` in the working folder.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from casebound.contracts.model_call import ModelRequest, NativeReply
from casebound.errors import TRANSIENT, ProviderError
from casebound.hookspecs import hookimpl
from casebound.settings_model import Table
from casebound.specs import ProviderSpec
from casebound.testing.distributions import write_distribution
from casebound.testing.inventory import settings_text
from casebound.testing.inventory_model import InventoryModel
from casebound.testing.inventory_plugin import casebound_catalogs
from casebound.testing.scripted import native_reply

__all__ = ["behave", "calls", "casebound_catalogs", "casebound_providers", "install_inventory"]

LOG = "calls.log"


class BehaviourSettings(Table):
    """`[llm.scripted]`."""

    behaviour: str = "answer"


class BehavingProvider(InventoryModel):
    """Does what its settings say."""

    def __init__(self, settings: BehaviourSettings) -> None:
        super().__init__()
        self._behaviour = settings.behaviour

    async def send(self, request: ModelRequest) -> NativeReply:
        """Log the request, then behave."""
        with open(LOG, "a", encoding="ascii") as log:
            log.write(f"{request.stage}\n")
        if self._behaviour == "answer":
            return await super().send(request)
        if self._behaviour == "nonsense":
            return native_reply("no JSON at all")
        if self._behaviour == "hang":
            sys.stderr.write("hanging\n")
            sys.stderr.flush()
            await asyncio.Event().wait()
        raise ProviderError(self._behaviour, retryable=self._behaviour in TRANSIENT)


@hookimpl
def casebound_providers() -> list[ProviderSpec]:
    """Offer the provider `scripted`."""
    settings, factory = f"{__name__}:BehaviourSettings", f"{__name__}:BehavingProvider"
    return [ProviderSpec("scripted", settings=settings, factory=factory)]


def install_inventory(folder: Path) -> Path:
    """Write the distribution `casebound-inventory` into `folder`, for `run_casebound(plugins=…)`; return the folder."""
    source = f"from {__name__} import casebound_catalogs, casebound_providers\n"
    write_distribution(folder, "casebound-inventory", source)
    return folder


def behave(behaviour: str) -> str:
    """Return the project's settings with a provider that behaves so."""
    return settings_text(llm=f'[llm.scripted]\nbehaviour = "{behaviour}"')


def calls(folder: Path) -> list[str]:
    """Return the stage of every request that was sent from working folder `folder`, in order."""
    try:
        return (folder / LOG).read_text(encoding="ascii").split()
    except FileNotFoundError:
        return []
