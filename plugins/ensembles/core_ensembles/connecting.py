"""Connects the steps of a plan with the models of the server and with those of this plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from core.config import Signature
from core.governing import ChainServices, Infer, ServedModels
from core.request import InferenceRequest
from core.response import Reply
from core_ensembles.arranging import Plan
from core_ensembles.conditions import ConditionModel, passed
from core_ensembles.counters import EnsembleMetrics
from core_ensembles.language.kinds import Form
from core_ensembles.turns import turns_of


def connected(
    plan: Plan,
    signature: Signature,
    forms: Mapping[str, Form | None],
    metrics: EnsembleMetrics,
    models: ServedModels,
    services: ChainServices,
) -> Infer:
    """Return what gives the request of a step to its model. Call it on the event loop."""
    own: dict[str, Infer] = {}

    def infer(request: InferenceRequest) -> Reply:
        model = own.get(request.model_name)
        return models.infer_step(request) if model is None else model(request)

    metrics.serve(signature)
    ensemble, version = signature.name, signature.version
    for name, decision in plan.decisions.items():
        counted: Callable[[bool], None] = partial(
            metrics.decided, (ensemble, version, decision.key)
        )
        if name.endswith(".while"):
            counted = _uncounted
        own[name] = ConditionModel(decision, services.loop, counted)
    own.update(dict.fromkeys(plan.passing, passed))
    known = {name: form for name, form in forms.items() if form is not None}
    for name, steps in plan.loops.items():
        again = plan.decisions.get(steps.again or "")
        turns = turns_of(
            signature,
            steps,
            again is not None and again.inverse,
            known,
            infer,
            models,
            services,
            partial(metrics.looped, (ensemble, version, steps.loop.key)),
        )
        own[name] = turns.run
    return infer


def _uncounted(runs: bool) -> None:
    """Do nothing: the turns of a loop are counted."""
