"""Lanes: which part of the last moments each instance was busy, by looking a few times a second.

Chain.executing ─► [Lanes] ─► name of the instance → [batches now, busy part]

The samples cost nothing on the path of a request. They are taken only while a page is open.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.lifecycle import ModelVersion

_LOOK_S = 0.2
_IDLE_LOOKS = 25  # without a question: then no page is open


class Lanes:
    """Samples of the instances of one process. Loop thread only."""

    def __init__(self) -> None:
        # Key of a model → instance → looks at which it was busy.
        self._busy: dict[str, Counter[str]] = {}
        self._looks = 0
        self._unasked = 0
        self._last: dict[str, Counter[str]] = {}
        self._last_looks = 1
        self._versions: Sequence[ModelVersion] = ()
        self._timer: asyncio.TimerHandle | None = None

    def turn(self) -> None:
        """Begin the next moment; the one that ends is what `of` and `were_busy` say.

        Call `follow` next.
        """
        self._last, self._last_looks = self._busy, max(1, self._looks)
        self._busy, self._looks, self._unasked = {}, 0, 0
        if self._timer is None:
            self._later()

    def follow(self, versions: Sequence[ModelVersion]) -> None:
        """Look at the instances of these versions from now on."""
        self._versions = versions

    def were_busy(self, model: str) -> bool:
        """Return whether an instance of a model was busy in the last moment. `model` is its key."""
        return model in self._last

    def of(self, version: ModelVersion) -> dict[str, list[Any]]:
        """Return instance → [batches that it executes now, part of the last moment in which it was busy]."""
        busy: Mapping[str, int] = self._last.get(version.key, {})
        return {
            name: [count, min(1.0, round(busy.get(_lane(version, name), 0) / self._last_looks, 2))]
            for name, count in version.chain.executing.items()
        }

    def close(self) -> None:
        """Take no more samples."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        self._unasked += 1
        if self._unasked > _IDLE_LOOKS:
            return
        self._looks += 1
        for version in self._versions:
            if version.state != "READY" or not version.in_flight:
                continue
            for name, count in version.chain.executing.items():
                if count:
                    busy = self._busy.setdefault(version.key, Counter())
                    busy[_lane(version, name)] += 1
        self._later()


def _lane(version: ModelVersion, instance: str) -> str:
    return f"{version.version}/{instance}"
