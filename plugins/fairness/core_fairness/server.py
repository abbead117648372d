"""ServerFairness: the fair queues of one server, and their settings.

core_layers ─► [ServerFairness] ─► FairQueue of each version, Group of each device ◄─ control operations
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import orjson

from core.backend import Model
from core.errors import CoreError, invalid
from core.governing import ModelVersion
from core_fairness.fair_queue import FairQueue
from core_fairness.group import Group
from core_fairness.options import FairOptions
from core_fairness.settings import Fairness
from core_fairness.waiting_table import WaitingTable
from frontends.shared.access.caller_names import CallerNames
from frontends.shared.context import context_of

if TYPE_CHECKING:
    from core.pipeline import Chain
    from core.server import InferenceServer

logger = logging.getLogger("core")

Source = Literal["flags", "file", "control"]
TABLE = "fair-waiting"  # of the entry points `core.worker_tables`
_FLAG = "--fair-settings"


class ServerFairness:
    """The fair queues of one server. Event loop only.

    fairness   settings in force
    source     where they come from
    queues     of the versions that are loaded, or about to be
    """

    def __init__(self, server: InferenceServer):
        """Raises CoreError(INVALID) for settings that are wrong, or cannot be read."""
        self.options = FairOptions.of(server.options)
        self.queues: dict[ModelVersion, FairQueue] = {}
        self._made: dict[Model, FairQueue] = {}  # of versions that are not ready yet
        self._groups: dict[str, Group] = {}
        self._configured = self.options.fairness()
        self.fairness = self._configured
        self.source: Source = "flags"
        self._table: WaitingTable | None = server.shared_table(TABLE)
        self._names = CallerNames.of(server)
        self._names.identify(self.options.fair_header, addresses=self.options.fair_addresses)
        if path := self.options.fair_settings:
            self._read(path)
            context_of(server).files.add(_FLAG, [path], lambda: self._read(path))

    def _read(self, path: str) -> None:
        """Put the settings of the file in force. Raises CoreError(INVALID)."""
        try:
            value = orjson.loads(Path(path).read_bytes())
        except OSError as error:
            raise invalid(f"{_FLAG}={path} cannot be read: {error.strerror}") from None
        except orjson.JSONDecodeError as error:
            raise invalid(f"{_FLAG}={path} is not JSON: {error}") from None
        try:
            found = Fairness.read(value, self.options.fairness())
        except CoreError as error:
            raise invalid(f"{_FLAG}={path}: {error.message}") from None
        self._put(found, "file")
        self._configured = found

    # models ----------------------------------------------------------------------

    def layer_of(self, model: Model) -> FairQueue | None:
        """Return the fair queue of a model that is about to open; None if it has none."""
        by_caller = self.options.includes(model.name)
        group = self.fairness.group_of(model.name)
        if not by_caller and group is None:
            return None
        loop = asyncio.get_running_loop()
        queue = FairQueue(model, self._names.name, loop, by_caller=by_caller, table=self._table)
        if group is not None:
            self._group(group).add(queue)
        self._made[model] = queue
        return queue

    def _group(self, name: str) -> Group:
        if name not in self._groups:
            self._groups[name] = Group(name, self.fairness.groups[name])
        return self._groups[name]

    def changed(self, version: ModelVersion, state: str) -> None:
        """Follow the state of a version."""
        if state == "ready" and version.model is not None:
            queue = self._made.pop(version.model, None)
            if queue is not None:
                self.queues[version] = queue
                # Only ensembles have another chain, and these have no model.
                queue.ready(cast("Chain", version.chain), version.signature, self.fairness)
        elif state in ("gone", "failed"):
            self._drop(self.queues.pop(version, None))
            if state == "failed":
                for model in [each for each in self._made if each.name == version.name]:
                    if model.version == version.version:
                        self._drop(self._made.pop(model))

    @staticmethod
    def _drop(queue: FairQueue | None) -> None:
        if queue is not None and queue.member is not None:
            queue.member.group.remove(queue)

    def of(self, model: str) -> list[FairQueue]:
        """Return the queues of the versions of a model; those of all models for ""."""
        return [each for each in self.queues.values() if not model or each.name == model]

    # settings -----------------------------------------------------------------------

    def set(self, value: Any) -> Callable[[], None]:
        """Put settings of a control call in force. Return a function that undoes it.

        Raises CoreError(INVALID) for wrong settings.
        """
        return self._put(Fairness.read(value), "control")

    def weigh(self, caller: str, weight: float | None, model: str) -> Callable[[], None]:
        """Give one caller another weight; None for the default. Return a function that undoes it."""
        if not caller:
            raise invalid("fairness: the name of the caller is empty")
        return self._put(self.fairness.with_weight(caller, weight, model), "control")

    def reset(self) -> Callable[[], None]:
        """Put the settings of flags and file in force. Return a function that undoes it."""
        return self._put(self._configured, "file" if self.options.fair_settings else "flags")

    def _put(self, fairness: Fairness, source: Source) -> Callable[[], None]:
        before = (self.fairness, self.source)
        self._check_groups(fairness)
        self.fairness, self.source = fairness, source
        for queue in self._all_queues():
            queue.set(fairness)
        for name, group in self._groups.items():
            if name in fairness.groups:
                group.set(fairness.groups[name])
        return lambda: self._undo(*before)

    def _undo(self, fairness: Fairness, source: Source) -> None:
        self._put(fairness, source)

    def _all_queues(self) -> list[FairQueue]:
        """Return the queues of versions that serve, and of those that load."""
        return [*self.queues.values(), *self._made.values()]

    def _check_groups(self, fairness: Fairness) -> None:
        """Raise CoreError(INVALID) for a model that would change its group while it serves or loads."""
        for queue in self._all_queues():
            now = None if queue.member is None else queue.member.group.name
            if (wanted := fairness.group_of(queue.name)) != now:
                raise invalid(
                    f"fairness: model '{queue.name}' is in {_shown(now)} and would be in {_shown(wanted)}; a "
                    "model changes its group only while it is not loaded"
                )


def _shown(group: str | None) -> str:
    return "no group" if group is None else f"group '{group}'"
