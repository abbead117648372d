"""Control: what an operator does with the server as a whole.

frontend ─► [Control] ─► an area ─► this process, or every process by way of an Exchange.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.control.exchange import Exchange
from core.control.health import HealthControl
from core.control.memory import MemoryControl
from core.control.operation import Area
from core.control.repository import RepositoryControl
from core.control.settings import SettingsControl


class Control:
    """The control plane. Not thread-safe: call from the event loop only.

    core.control.operation.OPERATIONS is the table of everything that it can do.

    health       whether the server serves, statistics, metrics
    repository   load, unload, index
    settings     of log and traces
    memory       shared memory of clients
    areas        all of them, by name
    """

    def __init__(
        self,
        health: HealthControl,
        repository: RepositoryControl,
        settings: SettingsControl,
        memory: MemoryControl,
        exchange: Exchange | None,
    ):
        self.health = health
        self.repository = repository
        self.settings = settings
        self.memory = memory
        areas: tuple[Area, ...] = (health, repository, settings, memory)
        self.areas: Mapping[str, Area] = {area.name: area for area in areas}
        for area in areas:
            area.exchange = exchange
        if exchange is not None:
            exchange.serve({name: each for area in areas for name, each in area.handlers().items()})
