"""LeftModels: the counts of models that servers no longer have, and of those of servers that have left.

ServerModel ─► keep ─► [LeftModels] ─► metrics; go_on ─► ServerModel

A counter that ends and begins again at zero makes sums over all servers fall.
"""

from __future__ import annotations

from collections.abc import Iterator

from core_router.servers.server_model import ServerModel

_MOST = 1000


class LeftModels:
    """The last thousand, by server and name of the model. Event loop only."""

    def __init__(self) -> None:
        self._models: dict[tuple[str, str], ServerModel] = {}  # those that left first are first

    def __iter__(self) -> Iterator[ServerModel]:
        return iter(self._models.values())

    def keep(self, left: ServerModel) -> None:
        """Keep the counts of a model."""
        key = (left.server.name, left.name)
        self._models.pop(key, None)
        if any(left.statuses) or left.lost or left.in_flight:
            self._models[key] = left
        while len(self._models) > _MOST:
            del self._models[next(iter(self._models))]

    def go_on(self, back: ServerModel) -> None:
        """Have a model count on from what it had counted when it left."""
        before = self._models.pop((back.server.name, back.name), None)
        if before is not None:
            back.count_on(before)
