"""WatchedServer: a running server whose statistics say what it does; it gets no requests from here."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from core_bench.model.address import parse_address
from core_bench.model.control import Control, HttpControl
from core_bench.plan import Side

from core_tune.configuration.json_form import settings_of, with_settings
from core_tune.configuration.threads import thread_parameters
from core_tune.observation import Refused
from core_tune.online.window import Window
from core_tune.server.executions import executions_of
from core_tune.server.live import live_batching
from core_tune.server.repository import Repository
from core_tune.settings import Settings


class WatchedServer:
    """Use as a context manager. Raises CoreError if the server or the model is not there."""

    def __init__(self, side: Side):
        address = parse_address(side.url, side.protocol)
        self._control: Control
        if side.protocol == "grpc":
            from core_bench.model.grpc_control import GrpcControl

            self._control = GrpcControl(side, address)
        else:
            self._control = HttpControl(side, address)
        try:
            self._model = side.model
            self._control.describe(side.model, side.version)
            self.repository = Repository(self._control, side.model)
            self.original: dict[str, Any] = self.repository.config()
            self.threads = thread_parameters(str(self.original.get("backend", "")))
            self.now = self._beginning = settings_of(self.original, self.threads)
            self._batching = live_batching(self._control, side.model, self.original)
            self._last = self._look()
        except BaseException:
            self._control.close()
            raise

    def __enter__(self) -> WatchedServer:
        return self

    def __exit__(self, *error: object) -> None:
        self._control.close()

    @property
    def most_rows(self) -> int:
        """Return max_batch_size; 0 for a model without a batch dimension."""
        return int(self.original.get("max_batch_size", 0))

    @property
    def live(self) -> bool:
        """Return whether batches and their delay change in place, by live settings of the server."""
        return self._batching is not None

    def window(self) -> Window:
        """Return what the server did since the last call. Raises CoreError if it does not answer."""
        (before_s, before), (at_s, now) = self._last, self._look()
        self._last = at_s, now
        requests, seconds = now.requests - before.requests, at_s - before_s
        if requests < 0:  # the model was loaded again, and counts from 0
            return Window(self.now, 0.0, 0.0, [], at_s, seconds)
        sizes = now.sizes_since(before)
        return Window(self.now, requests / seconds, now.seconds_since(before), sizes, at_s, seconds)

    def apply(self, settings: Settings) -> None:
        """Change the model in place. Raises Refused if the server cannot; it serves as before."""
        before = self.now
        if self._batching is not None and settings.batching != before.batching:
            self._batching.set(settings)
            self.now = before.with_batching_of(settings)
        if settings.instances != self.now.instances:
            # Live settings outlive loads.
            wanted = replace(self._beginning, instances=settings.instances)
            try:
                self.repository.load(with_settings(self.original, wanted, self.threads))
            except Refused:
                if self._batching is not None and self.now != before:
                    self._batching.set(before)
                    self.now = before
                raise
            self.now = settings

    def _look(self) -> tuple[float, Any]:
        return time.monotonic(), executions_of(self._control.statistics(self._model, ""))
