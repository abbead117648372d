"""Shares: fixed parts of the requests for some servers, such as one with a new version.

--share, PUT /shares ─► [Shares] ─► Split of a route ─► choose

A share is a part of the requests for a model. The servers without a share divide what is left by their wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from core.errors import invalid

if TYPE_CHECKING:
    from core_router.servers.server_model import ServerModel

ALL_MODELS = "*"

Percents = Mapping[str, float]


class Shares:
    """Percents by server, by model. Never changes.

    percents   model, or ALL_MODELS for those without an entry → name of a server → 0 to 100
    """

    def __init__(self, percents: Mapping[str, Percents] | None = None):
        self.percents = percents or {}

    @classmethod
    def of(cls, value: Any) -> Shares:
        """Return the shares that JSON has: {model: {server: percent}}. Raises CoreError(INVALID)."""
        if not isinstance(value, dict) or not all(
            isinstance(each, dict) for each in value.values()
        ):
            raise invalid(
                'shares are {"MODEL": {"SERVER": PERCENT}}, with "*" for all other models'
            )
        for model, percents in value.items():
            for server, percent in percents.items():
                is_number = isinstance(percent, int | float) and not isinstance(percent, bool)
                if not is_number or not 0 <= percent <= 100:
                    raise invalid(
                        f"the share of server {server} for model '{model}' is {percent!r}; "
                        "write a number from 0 to 100"
                    )
            if (total := sum(percents.values())) > 100:
                raise invalid(
                    f"the shares for model '{model}' are {total:g} % together, above 100 %"
                )
        return cls(value)

    @classmethod
    def read(cls, texts: Iterable[str]) -> Shares:
        """Return the shares of the option --share. Raises CoreError(INVALID)."""
        found: dict[str, dict[str, float]] = {}
        for text in texts:
            names, _, percent = text.rpartition("=")
            model, _, server = names.rpartition("@")
            try:
                number = float(percent.removesuffix("%"))
            except ValueError:
                server = ""
            if not server:
                raise invalid(
                    f"--share: '{text}' is no share; write SERVER=PERCENT or MODEL@SERVER=PERCENT, "
                    "such as gpu3:8000=5"
                )
            found.setdefault(model or ALL_MODELS, {})[server] = number
        return cls.of(found)

    def servers(self) -> set[str]:
        """Return the names of the servers with a share."""
        return {name for percents in self.percents.values() for name in percents}

    def split(self, model: str, candidates: tuple[ServerModel, ...]) -> Split | None:
        """Return how the candidates share the requests for a model; None if their wait alone decides."""
        percents = self.percents.get(model, self.percents.get(ALL_MODELS, {}))
        if len(candidates) < 2 or not any(each.server.name in percents for each in candidates):
            return None
        return Split(candidates, percents)


class Split:
    """Divides the requests of one route. Never changes."""

    def __init__(self, candidates: tuple[ServerModel, ...], percents: Percents):
        self._all = candidates
        self._others = tuple(each for each in candidates if each.server.name not in percents)
        fixed = [(each, percents.get(each.server.name, 0.0)) for each in candidates]
        # Without others, nothing is left: the shares are those of the whole.
        whole = 100.0 if self._others else sum(percent for _, percent in fixed)
        self._fixed = [(each, percent / whole) for each, percent in fixed if percent]

    def draw(
        self, at: float, tried: Collection[ServerModel], now_s: float
    ) -> tuple[ServerModel, ...]:
        """Return the servers of which one gets a request.

        at      uniform in 0 to 1: where the request falls
        tried   servers that cannot get it
        """
        for each, share in self._fixed:
            if at < share:
                if each not in tried and each.ejected_until <= now_s:
                    return (each,)
                break
            at -= share
        left = _left(self._others, tried) or _left([each for each, _ in self._fixed], tried)
        return left or self._all


def _left(
    candidates: Iterable[ServerModel], tried: Collection[ServerModel]
) -> tuple[ServerModel, ...]:
    return tuple(each for each in candidates if each not in tried)
