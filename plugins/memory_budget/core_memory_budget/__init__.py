"""More models than memory: an account, a budget, and loads on request. governor.py decides."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import core
from core_memory_budget.options import PARAMETERS, MemoryOptions

if TYPE_CHECKING:
    from core.config import ModelConfig
    from core.governing import ModelVersion
    from core.options import Flags, Options
    from core.server import InferenceServer
    from core_memory_budget.governor import Governor
    from core_memory_budget.metrics import MemoryMetrics

# Servers of one process. Keys are objects of a server that core passes to the hooks.
_metrics: dict[int, MemoryMetrics] = {}
_governors: dict[int, Governor] = {}
_started: dict[int, Governor] = {}
_of_versions: WeakKeyDictionary[ModelVersion, Governor] = WeakKeyDictionary()


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    from core.governing import KNOWN

    # core does not warn of parameters that it knows.
    KNOWN.extend(name for name in PARAMETERS if name not in KNOWN)
    parser.add_section(MemoryOptions)


@core.hookimpl
def core_open_metric_source(options: Options) -> MemoryMetrics:
    from core_memory_budget.metrics import MemoryMetrics

    _metrics[id(options)] = found = MemoryMetrics()
    return found


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Begin to govern the models of the server. Raises CoreError(INVALID) for an invalid budget."""
    from core_memory_budget.control import ModelMemoryControl
    from core_memory_budget.governor import Governor
    from core_memory_budget.measure import Meter
    from core_memory_budget.metrics import MemoryMetrics

    metrics = _metrics.pop(id(server.options), None) or MemoryMetrics()
    governor = _governors[id(server.models)] = Governor(server, metrics, Meter())
    _started[id(server)] = governor
    control = ModelMemoryControl(lambda: governor)
    server.control.add(control)
    if MemoryOptions.of(server.options).measures:
        from frontends.http.index_members import IndexMembers

        IndexMembers.of(server).add("memory", control.by_version)


@core.hookimpl
def core_complete_config(config: ModelConfig, path: Path) -> ModelConfig | None:
    from core_memory_budget.completed import completed

    # A copy: the loop thread may start or stop a server meanwhile.
    if not any(each.governs(config) for each in list(_governors.values())):
        return None
    return completed.find(config, path)


@core.hookimpl
def core_around_load(
    version: ModelVersion, server: Any
) -> AbstractAsyncContextManager[object] | None:
    from core.governing import asked_in_a_load

    governor = _governors.get(id(server))
    if governor is None:
        return None
    _of_versions[version] = governor
    return governor.around(version, asked_in_a_load())


@core.hookimpl
def core_model_changed(model: ModelVersion, state: str) -> None:
    if (governor := _of_versions.get(model)) is not None:
        governor.changed(model, state)


@core.hookimpl
def core_server_stopping(server: InferenceServer) -> None:
    if (governor := _started.pop(id(server), None)) is not None:
        del _governors[id(server.models)]
        governor.close()
