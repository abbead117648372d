"""The control operation model_memory.account, and the bytes of each version for the repository index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.control import Area, question
from core.control.exchange import ProcessResults
from core.control.operation import Arguments
from core_memory_budget.governor import Governor
from core_memory_budget.report import report, sizes
from core_memory_budget.sizes import Bytes, added


def _of_each(answers: ProcessResults, arguments: Arguments) -> list[dict[str, Any]]:
    answers.all()
    return [{"worker": number, **each[0]} for number, each in sorted(answers.values.items())]


def _all(answers: ProcessResults, arguments: Arguments) -> list[list[Any]]:
    answers.all()
    return [row for rows in answers.values.values() for row in rows]


class ModelMemoryControl(Area, name="model_memory"):
    """Tells what models take. `governor` returns the Governor of this process."""

    def __init__(self, governor: Callable[[], Governor]):
        self._governor = governor

    @question("statistics", _of_each)
    async def account(self) -> list[dict[str, Any]]:
        """Return budget, use and models of each process; the models with their state and their bytes."""
        return [await report(self._governor())]

    @question("statistics", _all, internal=True)
    async def sizes(self) -> list[list[Any]]:
        """Return [namespace or "", name, version, bytes by device] of each loaded version and process."""
        return sizes(self._governor())

    async def by_version(self) -> dict[tuple[str, str, str], Bytes]:
        """Return (namespace or "", name, version) → bytes by device, the sums of all processes."""
        found: dict[tuple[str, str, str], Bytes] = {}
        for namespace, name, version, size in await self.sizes():
            key = (namespace, name, version)
            found[key] = added([found.get(key, {}), size])
        return found
