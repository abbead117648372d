"""The control operations traffic.set, traffic.reset, traffic.get, traffic.models, traffic.roll_back."""

from __future__ import annotations

import logging
from typing import Any

from core.control import Area, Changed, change, here, question
from core.control.exchange import ProcessResults
from core.control.operation import Arguments
from core_traffic.report import merged
from core_traffic.server import ServerTraffic

logger = logging.getLogger("core")

_BEFORE = "the others keep their traffic of before"


def _listed(answers: ProcessResults, arguments: Arguments) -> list[dict[str, Any]]:
    return [report for reports in answers.all() for report in reports]


class TrafficControl(Area, name="traffic"):
    """Shares the requests of a model that name no version among its versions."""

    def __init__(self, traffic: ServerTraffic):
        self._traffic = traffic

    @change("model-repository", subject="traffic {model}", otherwise=_BEFORE)
    async def set(self, model: str, traffic: dict[str, Any]) -> Changed:
        """Set which versions of a model answer requests that name no version; return the settings."""
        found, undo = self._traffic.set(model, traffic)
        assert found.traffic is not None
        logger.info("traffic of model '%s': %s", found.name, found.traffic)
        return Changed(found.traffic.as_json(), undo=undo)

    @change("model-repository", subject="traffic {model}", otherwise=_BEFORE, internal=True)
    async def roll_back(
        self, model: str, before: dict[str, Any], after: dict[str, Any], event: dict[str, Any]
    ) -> Changed:
        """Replace the settings `before` of a model by `after`; return whether that was done here."""
        undo = self._traffic.roll_back(model, before, after, event)
        return Changed(undo is not None, idle=undo is None, undo=undo)

    @change("model-repository", subject="traffic {model}", otherwise=_BEFORE, forgets=True)
    async def reset(self, model: str) -> None:
        """Go back to the traffic of a model's configuration, else to its newest version."""
        found = self._traffic.reset(model)
        if found is not None:
            logger.info("traffic of model '%s': that of its configuration", found.name)

    @here("statistics")
    async def get(self, model: str) -> dict[str, Any]:
        """Return the settings of a model, and the counters of each of its versions."""
        return merged(await self.reports(model))

    @question("statistics", _listed, internal=True)
    async def reports(self, model: str) -> list[dict[str, Any]]:
        """Return the report of each process."""
        return [self._traffic.report(model)]

    @here("statistics")
    def models(self) -> list[str]:
        """Return the names of the models whose traffic is set."""
        return sorted(
            name for name, each in self._traffic.models.items() if each.traffic is not None
        )
