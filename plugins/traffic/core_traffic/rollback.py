"""Watch: takes a version out of the traffic of its model when it breaks the objective.

timer ─► own counters break the objective? ─► [Watch] ─► counters of all processes do? ─► traffic.roll_back

Each process looks at its own counters only. A version that breaks its objective over all processes does so in
at least one of them: a rate, and the share of slow requests, are means of those of the processes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from core.control import called_by
from core.errors import CoreError
from core_traffic.model import ModelTraffic
from core_traffic.objective import judged, without

if TYPE_CHECKING:
    from core_traffic.control import TrafficControl
    from core_traffic.server import ServerTraffic

logger = logging.getLogger("core")

PERIOD_S = 0.25  # between two looks at the counters
_CALLER = "the objective of its traffic"


class Watch:
    """Watches the models of one server that have an objective. Event loop only.

    The timer runs only while a model has an objective.
    """

    def __init__(self, traffic: ServerTraffic, control: TrafficControl):
        self._traffic = traffic
        self._control = control
        self._timer: asyncio.TimerHandle | None = None
        self._checks: dict[str, asyncio.Task[None]] = {}
        traffic.on_objective = self.start

    def start(self) -> None:
        """Begin to look at the counters, since a model has an objective."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PERIOD_S, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for task in self._checks.values():
            task.cancel()

    def _look(self) -> None:
        self._timer = None
        models = [each for each in self._traffic.models.values() if each.objective is not None]
        if models:
            self.start()
        for model in models:
            if model.name not in self._checks and model.suspects():
                task = asyncio.get_running_loop().create_task(self._check(model))
                self._checks[model.name] = task

    async def _check(self, model: ModelTraffic) -> None:
        """Roll back the first version that breaks the objective over all processes."""
        before = model.traffic
        try:
            report = await self._control.get(model.name)
            if before is None or model.traffic is not before:
                return  # changed meanwhile; the windows have begun anew
            for entry in report["versions"]:
                objective, window = before.rollback, entry["window"]
                if objective is None or entry["version"] not in judged(before):
                    continue
                if objective.enough(window) and (reason := objective.broken(window)):
                    await self._roll_back(model, entry["version"], reason)
                    return
        except CoreError as error:
            logger.warning("traffic of model '%s' cannot be judged: %s", model.name, error.message)
        finally:
            del self._checks[model.name]

    async def _roll_back(self, model: ModelTraffic, number: int, reason: str) -> None:
        before = model.traffic
        assert before is not None
        after = without(before, number, model.serving)
        if after is None:
            if model.helpless != number:
                model.helpless = number
                text = "traffic of model '%s': version %d is bad, but no other could answer: %s"
                logger.error(text, model.name, number, reason)
            return
        found = after.as_json()
        event: dict[str, Any] = {
            "time": time.time(),
            "version": number,
            "reason": reason,
            "weights": found["weights"],
        }
        with called_by(_CALLER):
            done = await self._control.roll_back(model.name, before.as_json(), found, event)
        if not done:
            return  # another process was faster, or an operator
        logger.warning(
            "traffic of model '%s': rolled back version %d: %s; now: %s",
            model.name, number, reason, after,
        )  # fmt: skip
