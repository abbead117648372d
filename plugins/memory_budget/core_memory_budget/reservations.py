"""Reservations: gives memory of the budget to loads, and unloads models that are needed less.

a load ─► [Reservations] ─► policy chooses ─► ModelManager.rest unloads ─► the load begins.  Loads get memory
one after the other, in the order in which they ask, so that none waits for ever.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from core.errors import CoreError, Kind
from core.governing import ModelManager
from core_memory_budget.account import Account, Entry, Need
from core_memory_budget.measuring import Measuring
from core_memory_budget.metrics import MemoryMetrics
from core_memory_budget.policy import Candidate, Level, value_of, victims
from core_memory_budget.residents import Users, candidates, users_of
from core_memory_budget.sizes import Bytes, added, shown

logger = logging.getLogger("core")

_LOOK_S = 0.05  # between two looks at models that another operation uses, or that sequences keep
MEMORY = "unloaded: memory"


class MemoryRefused(CoreError):
    """Error of a load that the budget cannot hold."""

    def __init__(self, message: str):
        super().__init__(Kind.UNAVAILABLE, message)


class Reservations:
    """The budget of one process. Event loop only.

    budget   device → bytes; devices without a budget are not limited
    pinned   returns the keys of the models that stay
    awaited  returns the keys of the models for which requests wait, and of those that such a load needs:
             once loaded, they serve these first
    wait_s   longest time for which a load waits for memory
    """

    def __init__(
        self,
        budget: Mapping[str, int],
        account: Account,
        manager: ModelManager,
        metrics: MemoryMetrics,
        measuring: Measuring,
        pinned: Callable[[], set[str]],
        awaited: Callable[[], set[str]],
        wait_s: float,
    ):
        self.budget = dict(budget)
        self._account = account
        self._manager = manager
        self._metrics = metrics
        self._measuring = measuring
        self._pinned = pinned
        self._awaited = awaited
        self._wait_s = wait_s
        self._loop = asyncio.get_running_loop()
        self._now: Callable[[], float] = time.time
        self._turn = asyncio.Lock()
        self._level = Level()
        self._changed = asyncio.Event()
        self._warned: set[str] = set()  # devices

    def changed(self) -> None:
        """Note that memory may have become free."""
        self._changed.set()

    async def reserve(self, entries: Sequence[Entry], needs: Sequence[Need]) -> list[str]:
        """Reserve memory for loads that belong together: for all of them, or for none.

        Adds the entries to the account. Unloads other models if that is necessary, and returns their keys.
        Raises MemoryRefused if the budget cannot hold them, or does not within the longest wait.
        """
        for entry, need in zip(entries, needs, strict=True):
            entry.bytes = dict(need.peak)
        unloaded: list[str] = []  # without a budget
        if self.budget and entries:
            end = self._loop.time() + self._wait_s
            try:
                await asyncio.wait_for(self._turn.acquire(), self._wait_s)
            except asyncio.TimeoutError:
                raise self._refused(entries, added(each.kept for each in needs)) from None
            try:
                unloaded = await self._make_room(entries, needs, end)
                self._account.entries += entries
            finally:
                self._turn.release()
        else:
            self._account.entries += entries
        return unloaded

    async def _make_room(
        self, entries: Sequence[Entry], needs: Sequence[Need], end: float
    ) -> list[str]:
        """Unload models until the loads fit; return their keys."""
        unloaded: list[str] = []
        kept = added(each.kept for each in needs)
        loading = {entry.key for entry in entries}
        while True:
            users = self._users()
            found = [each for each in self._candidates(users) if each.key not in loading]
            most = self._most(found)
            if not self._could_hold(kept, users) or self._loop.time() >= end:
                raise self._refused(entries, kept)
            chosen = None
            if all(size <= most[device] for device, size in kept.items() if device in most):
                self._fit_peaks(entries, needs, most)
                missing = self._missing(added(entry.bytes for entry in entries))
                if not missing:
                    return unloaded
                chosen = victims(missing, found, self._level)
            gone = [] if chosen is None else await self._unload(chosen, end)
            unloaded += gone
            if not gone:
                await self._wait(end)

    async def unload_excess(self) -> bool:
        """Unload models if more is loaded than the budget holds; return whether it still is.

        A load may take more than was reserved for it, and the processes of models grow. Models with a waiting
        request and those that stay are kept; if all others are too small, all that help go.
        """
        if self._excess():
            async with self._turn:  # a load that waits for memory may unload enough
                chosen = self._chosen_for_excess()
            # Outside of the turn: loads must not wait for the requests of these models.
            if chosen:
                await self._unload(chosen, self._loop.time() + self._wait_s)
        excess = self._excess()
        if not self._is_loading():
            self._warn_of(excess)
        return bool(excess)

    def _chosen_for_excess(self) -> Sequence[Candidate]:
        excess = self._excess()
        if not excess:
            return []
        found = self._candidates(self._users())
        chosen = victims(excess, found, self._level)
        if chosen is not None:
            return chosen
        # A version that is loading may be the one that takes too much, or end the one before it: look again.
        if self._is_loading():
            return []
        return [each for each in found if any(map(each.bytes.get, excess))]

    def _is_loading(self) -> bool:
        return any(each.state == "LOADING" for each in self._manager.versions())

    def _excess(self) -> Bytes:
        """Return device → bytes of models beyond its budget, for each device where there are any.

        The memory of models that are being unloaded is about to go.
        """
        used = added(each.bytes for each in self._account.entries if each.state != "unloading")
        over = {device: used.get(device, 0) - size for device, size in self.budget.items()}
        return {device: size for device, size in over.items() if size > 0}

    def _warn_of(self, excess: Bytes) -> None:
        """Warn once of each device on which models take more than its budget, until they do not."""
        for device in excess.keys() - self._warned:
            stay = ", ".join(f"{key} {shown(n)}" for key, n in self._staying(device).items())
            logger.warning(
                "models take %s more of %s than --memory-budget allows, and now none of them can be "
                "unloaded for it: %s",
                *(shown(excess[device]), device, stay or "loads are running"),
            )
        self._warned = set(excess)

    def _users(self) -> Users:
        return users_of(self._manager.versions(), self._pinned())

    def _candidates(self, users: Users) -> list[Candidate]:
        awaited = self._awaited()
        found = candidates(self._account.entries, users, self._now())
        return [each for each in found if each.key not in awaited]

    def _most(self, found: Sequence[Candidate]) -> Bytes:
        """Return device → bytes that are free once every candidate is unloaded."""
        used, free = self._account.used(), added(each.bytes for each in found)
        return {
            device: size - used.get(device, 0) + free.get(device, 0)
            for device, size in self.budget.items()
        }

    def _fit_peaks(self, entries: Sequence[Entry], needs: Sequence[Need], most: Bytes) -> None:
        """Reserve the peaks of the loads, or what there can be of it: a peak is often guessed."""
        for device, size in most.items():
            kept = [need.kept.get(device, 0) for need in needs]
            more = [
                need.peak.get(device, 0) - least for need, least in zip(needs, kept, strict=True)
            ]
            part = min(1.0, (size - sum(kept)) / max(1, sum(more)))
            for entry, least, extra in zip(entries, kept, more, strict=True):
                if least or extra:
                    entry.bytes[device] = least + int(extra * part)

    def _missing(self, wanted: Mapping[str, int]) -> Bytes:
        used = self._account.used()
        missing = {
            device: used.get(device, 0) + wanted.get(device, 0) - size
            for device, size in self.budget.items()
        }
        return {device: size for device, size in missing.items() if size > 0 and wanted.get(device)}

    def _could_hold(self, kept: Mapping[str, int], users: Users) -> bool:
        """Return whether a load fits beside the models that are never unloaded for others."""
        stays = added(
            entry.bytes
            for entry in self._account.entries
            if entry.state != "unloading"
            and (entry.settings.pin or not entry.settings.on_request or entry.key in users.pinned)
        )
        return all(
            size <= self.budget[device] - stays.get(device, 0)
            for device, size in kept.items()
            if device in self.budget
        )

    async def _unload(self, chosen: Sequence[Candidate], end: float) -> list[str]:
        """Unload models; return the keys of those that are unloaded now."""
        now = self._now()
        tasks = [
            self._loop.create_task(self.rest(each.key, MEMORY, "memory", each.busy))
            for each in chosen
        ]
        await asyncio.wait(tasks, timeout=max(0.0, end - self._loop.time()))
        gone: list[str] = []
        for each, task in zip(chosen, tasks, strict=True):
            if not task.done():
                continue
            if error := task.exception():
                logger.error("unloading '%s' for another model failed", each.key, exc_info=error)
            elif task.result():
                self._level.rise(now, value_of(each, self._level))
                gone.append(str(each.key))
        oldest = min((each.loaded_at for each in self._account.entries), default=now)
        self._level.forget(oldest)
        return gone

    async def rest(self, key: str, reason: str, label: str, busy: bool = False) -> bool:
        """Unload a model until a request needs it; return whether it is unloaded.

        busy   whether the unload has to wait for requests
        """
        sizes = added(each.bytes for each in self._account.entries if each.key == key)
        async with self._measuring.unload(busy):
            if not await self._manager.rest(key, reason):
                return False
        self._metrics.unloads[str(key), label] += 1
        free = ", ".join(f"{device} {shown(size)}" for device, size in sizes.items())
        logger.info(
            "unloaded '%s' until a request needs it: %s, frees %s", key, label, free or "nothing"
        )
        return True

    async def _wait(self, end: float) -> None:
        self._changed.clear()
        left_s = min(_LOOK_S, max(0.0, end - self._loop.time()))
        try:
            await asyncio.wait_for(self._changed.wait(), left_s)
        except asyncio.TimeoutError:
            pass

    def _refused(self, entries: Sequence[Entry], kept: Mapping[str, int]) -> MemoryRefused:
        names = "', '".join(dict.fromkeys(str(entry.key) for entry in entries))
        parts = []
        for device, size in kept.items():
            if device in self.budget:
                stay = self._staying(device)
                parts.append(
                    f"{device}: needs {shown(size)}, the budget is {shown(self.budget[device])}, "
                    f"{shown(sum(stay.values()))} of it stays loaded"
                    + (
                        f" ({', '.join(f'{k} {shown(n)}' for k, n in stay.items())})"
                        if stay
                        else ""
                    )
                )
        error = MemoryRefused(
            f"no memory to load '{names}': {'; '.join(parts)}; unload or unpin a model, or increase "
            "--memory-budget"
        )
        for entry in entries:
            self._metrics.refusals[str(entry.key)] += 1
        logger.warning("%s", error.message)
        return error

    def _staying(self, device: str) -> dict[str, int]:
        """Return key → bytes of the models on a device that cannot be unloaded now, the largest first."""
        may_go = {each.key for each in self._candidates(self._users())}
        found: dict[str, int] = {}
        for entry in self._account.entries:
            if entry.key not in may_go and entry.bytes.get(device):
                found[str(entry.key)] = found.get(str(entry.key), 0) + entry.bytes[device]
        return dict(sorted(found.items(), key=lambda pair: -pair[1])[:8])
