"""Control: what an operator does with the server as a whole.

frontend ─► [Control] ─► an area ─► this process, or every process by way of an Exchange.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from core.control.exchange import Exchange
from core.control.health import HealthControl
from core.control.memory import MemoryControl
from core.control.operation import Area
from core.control.repository import RepositoryControl
from core.control.settings import SettingsControl

A = TypeVar("A", bound=Area)


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
        self._exchange = exchange
        self._areas: dict[str, Area] = {}
        self.areas: Mapping[str, Area] = MappingProxyType(self._areas)
        for area in (health, repository, settings, memory):
            self.add(area)

    def add(self, area: A) -> A:
        """Serve the operations of an area, in all processes of the server; return the area."""
        area.exchange = self._exchange
        self._areas[area.name] = area
        if self._exchange is not None:
            areas = self._areas.values()
            self._exchange.serve(
                {name: do for each in areas for name, do in each.handlers().items()}
            )
        return area
