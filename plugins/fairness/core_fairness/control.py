"""The control operations fairness.show, .settings, .set, .weigh and .reset."""

from __future__ import annotations

import logging
from typing import Any

from core.control import Area, Changed, change, here, question
from core.control.exchange import ProcessResults
from core.control.operation import Arguments
from core.errors import not_found
from core_fairness.report import merged, report_of
from core_fairness.server import ServerFairness

logger = logging.getLogger("core")

_BEFORE = "the others keep the shares of before"


def _listed(answers: ProcessResults, arguments: Arguments) -> list[dict[str, Any]]:
    return [entry for entries in answers.all() for entry in entries]


class FairnessControl(Area, name="fairness"):
    """Sets which share of a model each caller gets, and shows what each has got."""

    def __init__(self, fairness: ServerFairness):
        self._fairness = fairness

    @change("model-repository", subject="fairness", otherwise=_BEFORE)
    async def set(self, settings: dict[str, Any]) -> Changed:
        """Replace all weights, bounds and groups; return them."""
        undo = self._fairness.set(settings)
        logger.info("fair shares: settings of a control call")
        return Changed(self._fairness.fairness.as_json(), undo=undo)

    @change("model-repository", subject="fairness {model} {caller}", otherwise=_BEFORE)
    async def weigh(self, caller: str, weight: float | None = None, model: str = "") -> Changed:
        """Give one caller another weight, in one model or in all; without a weight, the default."""
        undo = self._fairness.weigh(caller, weight, model)
        where = f" in model '{model}'" if model else ""
        logger.info(
            "fair shares: caller '%s' has the weight %s%s", caller, weight or "default", where
        )
        return Changed(undo=undo)

    @change("model-repository", subject="fairness", otherwise=_BEFORE)
    async def reset(self) -> Changed:
        """Go back to the settings of the flags and of the file."""
        undo = self._fairness.reset()
        logger.info("fair shares: settings of flags and file")
        return Changed(undo=undo)

    @here("statistics")
    def settings(self) -> dict[str, Any]:
        """Return the settings, and where they come from."""
        return {"source": self._fairness.source, **self._fairness.fairness.as_json()}

    @here("statistics")
    async def show(self, model: str = "") -> list[dict[str, Any]]:
        """Return who waits for each model, and what each caller has got; of one model, or of all."""
        found = merged(await self.reports(model))
        if model and not found:
            raise not_found(
                f"model '{model}' has no fair queue; start the server with --fair={model}, and load the model"
            )
        return found

    @question("statistics", _listed, internal=True)
    async def reports(self, model: str) -> list[dict[str, Any]]:
        """Return the state of the queues of each process."""
        return report_of(self._fairness.of(model))
