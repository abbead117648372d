"""Fair shares: callers take turns in a model, and models on a device. server.py begins it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import core
from core import plugins
from core_fairness.options import FairOptions

if TYPE_CHECKING:
    from core.backend import Model
    from core.governing import ModelVersion
    from core.options import Flags, Options
    from core.pipeline.layers import Layer
    from core.server import InferenceServer
    from core_fairness.metrics import FairMetrics
    from core_fairness.server import ServerFairness

# Servers of one process. Keys are objects of a server that core passes to the hooks.
_metrics: dict[int, FairMetrics] = {}
_servers: dict[int, ServerFairness] = {}


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    parser.add_section(FairOptions)


@core.hookimpl
def core_open_metric_source(options: Options) -> FairMetrics:
    from core_fairness.metrics import FairMetrics

    _metrics[id(options)] = found = FairMetrics()
    return found


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Begin to share fairly, if the options ask for it. Raises CoreError(INVALID) for wrong settings."""
    metrics = _metrics.pop(id(server.options), None)
    if not FairOptions.of(server.options).wanted:
        return
    from core_fairness.control import FairnessControl
    from core_fairness.server import ServerFairness

    fairness = _servers[id(server.models)] = ServerFairness(server)
    if not plugins.hooks().is_registered(_layers):
        plugins.hooks().register(_layers, "fairness of callers")
    server.control.add(FairnessControl(fairness))
    if metrics is not None:
        metrics.queues = fairness.queues.values()


class FairLayers:
    """The hook of the layers, registered while a server shares fairly: `core explain` names it only then."""

    # Of the layers of several plugins this is the innermost: the others see a request when it comes.
    @core.hookimpl(trylast=True)
    def core_layers(self, model: Model) -> Sequence[Layer] | None:
        fairness = _servers.get(
            id(getattr(model, "server", None))
        )  # tests hold models without a server
        queue = None if fairness is None else fairness.layer_of(model)
        return None if queue is None else [queue.layer]


_layers = FairLayers()


@core.hookimpl
def core_model_changed(model: ModelVersion, state: str, reason: str) -> None:
    for fairness in _servers.values():
        fairness.changed(model, state)


@core.hookimpl
def core_server_stopping(server: InferenceServer) -> None:
    models = id(getattr(server, "models", None))  # a server that never started has none
    if _servers.pop(models, None) is not None and not _servers:
        plugins.hooks().unregister(_layers)
