"""Traffic by version: which version of a model answers requests that name none. server.py begins it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import core

if TYPE_CHECKING:
    from core.governing import ModelVersion
    from core.options import Flags, Options
    from core.server import InferenceServer
    from core_traffic.metrics import TrafficMetrics
    from core_traffic.rollback import Watch
    from core_traffic.server import ServerTraffic

# Servers of one process. Keys are objects of a server that core passes to the hooks.
_metrics: dict[int, TrafficMetrics] = {}
_traffic: dict[int, ServerTraffic] = {}
_watches: dict[int, Watch] = {}


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    """Add no option; let core know the parameter, so that it does not warn of it."""
    from core.governing import KNOWN
    from core_traffic.settings import PARAMETER

    if PARAMETER not in KNOWN:
        KNOWN.append(PARAMETER)


@core.hookimpl
def core_open_metric_source(options: Options) -> TrafficMetrics:
    from core_traffic.metrics import TrafficMetrics

    _metrics[id(options)] = found = TrafficMetrics()
    return found


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Put the traffic of the server before its endpoints; add its control operations and its route."""
    from core_traffic import routes
    from core_traffic.control import TrafficControl
    from core_traffic.rollback import Watch
    from core_traffic.server import ServerTraffic

    traffic = _traffic[id(server.models)] = ServerTraffic(server)
    if (metrics := _metrics.pop(id(server.options), None)) is not None:
        metrics.models = traffic.models.values()
    control = server.control.add(TrafficControl(traffic))
    _watches[id(server.models)] = Watch(traffic, control)
    routes.add_to(server, control)


@core.hookimpl
def core_around_load(
    version: ModelVersion, server: Any
) -> AbstractAsyncContextManager[object] | None:
    """Refuse a load whose configuration has wrong settings."""
    if (traffic := _traffic.get(id(server))) is not None:
        traffic.check(version.key, version.config)
    return None


@core.hookimpl
def core_model_changed(model: ModelVersion, state: str, reason: str) -> None:
    """Cancel the copies to a version that unloads."""
    if state == "unloading":
        for traffic in _traffic.values():
            traffic.leaving(model)


@core.hookimpl
def core_server_stopping(server: InferenceServer) -> None:
    models = id(getattr(server, "models", None))  # a server that never started has none
    if (watch := _watches.pop(models, None)) is not None:
        watch.stop()
    if (traffic := _traffic.pop(models, None)) is not None:
        traffic.close()
