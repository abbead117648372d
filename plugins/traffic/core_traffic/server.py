"""ServerTraffic: the traffic of all models of one server.

EndpointTable.front ─► [ServerTraffic] ─► ModelTraffic ◄─ control operations
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from core.config import ModelConfig
from core.errors import CoreError, invalid, not_found
from core.governing import EndpointTable, ModelEndpoint, ModelVersion
from core_traffic.check import check_sequences, traffic_of
from core_traffic.model import ModelTraffic, Source, parameter_of, unfit
from core_traffic.settings import Traffic
from frontends.grpc.options import GrpcOptions
from frontends.http.options import HttpOptions

if TYPE_CHECKING:
    from core.server import InferenceServer

logger = logging.getLogger("core")


class ServerTraffic:
    """The traffic of one server. Event loop only.

    models         key → ModelTraffic, of the models that have settings, or had some
    on_objective   called when a model has settings with an objective
    """

    def __init__(self, server: InferenceServer):
        self.models: dict[str, ModelTraffic] = {}
        self.on_objective: Callable[[], None] = lambda: None
        self._executor = ThreadPoolExecutor(
            1, "traffic-shadow"
        )  # its thread starts with the first task
        self._manager = server.manager
        self._table: EndpointTable = server.manager.endpoints
        self._table.front = self._front
        self._forwarded = [
            re.compile(pattern)
            for pattern in (
                HttpOptions.of(server.options).http_header_forward_pattern,
                GrpcOptions.of(server.options).grpc_header_forward_pattern,
            )
            if pattern
        ]

    # loads -----------------------------------------------------------------------

    def check(self, name: str, config: ModelConfig) -> None:
        """Raise CoreError(INVALID) for wrong settings in a configuration."""
        if (traffic := traffic_of(name, config)) is not None:
            self._check_headers(name, traffic)

    def leaving(self, version: ModelVersion) -> None:
        """Cancel the copies to a version that unloads."""
        if (model := self.models.get(version.key)) is not None:
            model.leaving(version.chain.handler)

    def close(self) -> None:
        """Stop to compare."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _front(self, name: str, endpoints: dict[int, ModelEndpoint]) -> ModelEndpoint | None:
        """Return what answers requests for a model that name no version; None for its newest version."""
        config = self._manager.resolve(name, max(endpoints)).config
        model = self.models.get(name)
        if model is None:
            if not parameter_of(config):
                return None
            model = self._model(name)
        try:
            model.configure(config)
        except (
            CoreError
        ) as error:  # a load with these settings has failed before; an older version serves
            logger.error("%s", error.message)
        if model.objective is not None:
            self.on_objective()
        return model.front(endpoints)

    def _model(self, name: str) -> ModelTraffic:
        if name not in self.models:
            self.models[name] = self._new(name)
        return self.models[name]

    def _new(self, name: str) -> ModelTraffic:
        loop = asyncio.get_running_loop()
        return ModelTraffic(name, loop, self._executor, partial(self._sequence_idle_s, name))

    def _sequence_idle_s(self, key: str) -> float:
        """Return the longest pause in a sequence that a version allows now: live settings may change it."""
        ready = [self._manager.resolve(key, each) for each in self._manager.ready_versions(key)]
        idle_us = [each.config.sequence_batching.max_sequence_idle_microseconds for each in ready]
        return max(idle_us, default=0) / 1e6

    # control calls -----------------------------------------------------------------

    def set(self, name: str, value: Any) -> tuple[ModelTraffic, Callable[[], None]]:
        """Put settings of a control call in force. Return the model, and a function that undoes it.

        Raises CoreError(NOT_FOUND) for an unknown model, CoreError(INVALID) for wrong settings and for a
        version that is not ready.
        """
        key, ready = self._ready(name)
        traffic = Traffic.read(key, value)
        self._check_headers(key, traffic)
        self._check_versions(key, traffic, ready)
        config = self._manager.resolve(key, max(ready)).config
        check_sequences(key, traffic, config)
        model = self._model(key)
        model.configure(config)
        return model, self._put(model, traffic, "control")

    def roll_back(
        self, name: str, before: Any, after: Any, event: dict[str, Any]
    ) -> Callable[[], None] | None:
        """Replace the settings `before` by `after`. Return a function that undoes it.

        Return None, and do nothing, if other settings are in force.
        event   time, version, reason and weights, which the model keeps
        A process without changes since its start takes `after` in any case: it repeats what the others did.
        Raises CoreError(NOT_FOUND) for an unknown model.
        """
        key, ready = self._ready(name)
        model = self._model(key)
        model.configure(self._manager.resolve(key, max(ready)).config)
        if model.changed and (model.traffic is None or model.traffic.as_json() != before):
            return None
        undo = self._put(model, Traffic.read(key, after), "rollback")
        forget = model.rolled_back(event)

        def undo_all() -> None:
            undo()
            forget()

        return undo_all

    def _put(self, model: ModelTraffic, traffic: Traffic, source: Source) -> Callable[[], None]:
        """Put settings in force. Return a function that undoes it."""
        before = (model.traffic, model.source, model.changed)

        def put(traffic: Traffic | None, source: Source, changed: bool) -> None:
            model.changed = changed
            model.put(traffic, source)
            self._table.renew(model.name)

        put(traffic, source, True)
        return lambda: put(*before)

    def reset(self, name: str) -> ModelTraffic | None:
        """Put the settings of the configuration in force. Return the model; None if it has none.

        Raises CoreError(NOT_FOUND) for an unknown model.
        """
        model = self.models.get(self._manager.resolve(name).key)
        if model is not None:
            model.changed = True
            model.reset()
            self._table.renew(model.name)
        return model

    def report(self, name: str) -> dict[str, Any]:
        """Return the state of a model in this process. Raises CoreError(NOT_FOUND) for an unknown model."""
        key = self._manager.resolve(name).key
        model = self.models.get(key)
        if model is None:
            model = self._new(key)
        return model.report()

    def _ready(self, name: str) -> tuple[str, list[int]]:
        """Return the key of a model, and its versions that are ready. Raises CoreError(NOT_FOUND)."""
        key = self._manager.resolve(name).key
        ready = self._manager.ready_versions(key)
        if not ready:
            raise not_found(f"model '{name}' has no version that is ready; load it first")
        return key, ready

    def _check_versions(self, key: str, traffic: Traffic, ready: list[int]) -> None:
        for number in sorted(traffic.named()):
            if number not in ready:
                raise invalid(
                    f"traffic of model '{key}': version {number} is not ready; ready: "
                    f"{', '.join(map(str, ready))}"
                )
        endpoints = {number: self._table.find(key, number) for number in traffic.named()}
        for number, reason in unfit(min(endpoints), endpoints).items():
            raise invalid(f"traffic of model '{key}': version {number} cannot take part: {reason}")

    def _check_headers(self, name: str, traffic: Traffic) -> None:
        for header in traffic.headers():
            spellings = (header, header.title(), header.upper())
            if not any(each.search(text) for each in self._forwarded for text in spellings):
                raise invalid(
                    f"traffic of model '{name}': the header '{header}' is not forwarded to models; start the "
                    f"server with --http-header-forward-pattern='(?i){re.escape(header)}', for gRPC with "
                    f"--grpc-header-forward-pattern={re.escape(header)}"
                )
