"""The control operation model_memory.account."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.control import Area, question
from core.control.exchange import ProcessResults
from core.control.operation import Arguments
from core_memory_budget.governor import Governor
from core_memory_budget.report import report


def _of_each(answers: ProcessResults, arguments: Arguments) -> list[dict[str, Any]]:
    answers.all()
    return [{"worker": number, **each[0]} for number, each in sorted(answers.values.items())]


class ModelMemoryControl(Area, name="model_memory"):
    """Tells what models take. `governor` returns the Governor of this process."""

    def __init__(self, governor: Callable[[], Governor]):
        self._governor = governor

    @question("statistics", _of_each)
    async def account(self) -> list[dict[str, Any]]:
        """Return budget, use and models of each process; the models with their state and their bytes."""
        return [await report(self._governor())]
