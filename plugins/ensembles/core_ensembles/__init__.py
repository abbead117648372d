"""Loops, conditions and fallbacks in ensembles. arranging.py has the idea."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.config import ModelConfig, Signature
    from core.governing import Arrangement, ChainServices, Infer, ModelVersion, ServedModels, Step
    from core.options import Options
    from core.server import InferenceServer
    from core_ensembles.arranging import Plan
    from core_ensembles.counters import EnsembleMetrics
    from core_ensembles.language.kinds import Form

# Servers of one process, by the identity of their options, then of `server.models`.
_opened: dict[int, EnsembleMetrics] = {}
_started: dict[int, EnsembleMetrics] = {}


@core.hookimpl
def core_open_metric_source(options: Options) -> EnsembleMetrics:
    from core_ensembles.counters import EnsembleMetrics

    _opened[id(options)] = found = EnsembleMetrics()
    return found


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    if (metrics := _opened.pop(id(server.options), None)) is not None:
        _started[id(server.models)] = metrics


@core.hookimpl
def core_model_changed(model: ModelVersion, state: str, reason: str) -> None:
    if state in ("gone", "failed") and (signature := getattr(model, "signature", None)) is not None:
        for metrics in _started.values():
            metrics.drop(signature)


@core.hookimpl
def core_server_stopping(server: InferenceServer) -> None:
    # A server that never started has no models.
    _started.pop(id(getattr(server, "models", None)), None)


@core.hookimpl
def core_arrange_ensemble(
    config: ModelConfig,
    signature: Signature,
    steps: list[Step],
    models: Sequence[Signature | None],
) -> Arrangement:
    """Arrange the steps by the parameters `step[…` and `loop[…`. Raises CoreError(INVALID)."""
    from core.governing import Arrangement
    from core_ensembles.arranging import arranged
    from core_ensembles.parameters import rules_of
    from core_ensembles.tensors import check_tensors, forms_of

    rules = rules_of(config)
    forms = forms_of(signature, steps, models)
    check_tensors(config, rules, steps, forms)
    optional = frozenset(name for name, each in signature.inputs.items() if each.optional)
    plan = arranged(rules, steps, models, signature.outputs, forms, optional)
    return Arrangement(plan.steps, partial(_connected, plan, signature, forms))


def _connected(
    plan: Plan,
    signature: Signature,
    forms: dict[str, Form | None],
    models: ServedModels,
    services: ChainServices,
) -> Infer:
    from core_ensembles.connecting import connected
    from core_ensembles.counters import EnsembleMetrics

    metrics = _started.get(id(models)) or EnsembleMetrics()
    return connected(plan, signature, forms, metrics, models, services)
