"""Control: what an operator does with the server as a whole.

frontend ─► [Control] ─► an area ─► this process, or every process by way of an Exchange.
"""

from __future__ import annotations

from typing import TypeVar

from core.control.exchange import Exchange
from core.control.health import HealthControl
from core.control.operation import Area
from core.control.repository import RepositoryControl
from core.control.settings import SettingsControl
from core.errors import CoreError, Kind

A = TypeVar("A", bound=Area)


class Control:
    """The control plane. Not thread-safe: call from the event loop only.

    core.control.operation.OPERATIONS is the table of everything that it can do.

    health       whether the server serves, statistics, metrics
    repository   load, unload, index
    settings     of log and traces
    areas        name → area: these three, and those that plugins and frontends have added
    """

    def __init__(
        self,
        health: HealthControl,
        repository: RepositoryControl,
        settings: SettingsControl,
        exchange: Exchange | None,
    ):
        self.health = health
        self.repository = repository
        self.settings = settings
        self._exchange = exchange
        self.areas: dict[str, Area] = {}
        for area in (health, repository, settings):
            self.add(area)

    def add(self, area: A) -> A:
        """Serve the operations of an area, in all processes of the server; return the area.

        Call it in the hook core_server_starting or in the constructor of a frontend, in every process: later
        another process may already ask for an operation.
        Raises CoreError(ALREADY_EXISTS) if there is an area of that name.
        """
        if (known := self.areas.get(area.name)) is not None:
            text = f"control area '{area.name}' of {type(known).__module__} exists already; use another name"
            raise CoreError(Kind.ALREADY_EXISTS, text)
        area.exchange = self._exchange
        self.areas[area.name] = area
        if self._exchange is not None:
            areas = self.areas.values()
            self._exchange.serve(
                {name: do for each in areas for name, do in each.handlers().items()}
            )
        return area
