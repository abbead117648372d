"""Open an ensemble: find the models of its steps, and chain them. The registry loads these models first.

Arrangement: what a plugin makes of the steps, by parameters that core does not read, such as those of loops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from core import plugins
from core.config import ModelConfig, Signature
from core.config.conditions import needs_arranging
from core.config.validation.general import check_response_cache
from core.errors import CoreError, invalid
from core.lifecycle.host import Host, ServedModels
from core.lifecycle.steps import check_steps, ranks_of
from core.pipeline import ChainServices
from core.pipeline.ensemble import EnsembleChain, Step, StepModels, steps_of
from core.pipeline.ensemble.plan import Infer
from core.request import NEWEST


class Arrangement(NamedTuple):
    """What a plugin makes of the steps of an ensemble.

    steps     the steps to run: those of the configuration, copies with other tensors, and steps of the plugin
    connect   called once per load, on the loop: returns what sends the request of a step to its model
    """

    steps: list[Step]
    connect: Callable[[ServedModels, ChainServices], Infer]


async def open_ensemble(
    config: ModelConfig, signature: Signature, host: Host, content: str
) -> EnsembleChain:
    """Return the chain of an ensemble. Write into `config` whether the ensemble is decoupled: if a step is.

    content   a digest of what the ensemble itself was loaded from

    Raises CoreError(INVALID) if a step's model does not serve, if a step does not fit its model, or if
    the configuration asks for a response cache and the ensemble is decoupled.
    """
    served = host.models
    steps = steps_of(config)
    models = signatures_of_steps(config.name, steps, served.signature)
    signature = fitted(config, signature, steps, models)
    for step, model in zip(steps, models, strict=True):
        step.optional = frozenset(spec.name for spec in model.inputs.values() if spec.optional)
        step.takes_device = served.takes_device(step.model, step.version)
    ranks = ranks_of(signature, steps, models)
    services = ChainServices(host.loop, cache=host.cache)
    arranged = arrangement_of(config, signature, steps, models)

    def ready() -> bool:
        with suppress(CoreError):
            return all(served.is_ready(step.model, step.version) for step in steps)
        return False

    async def check() -> bool:
        asked = [served.check(step.model, step.version) for step in steps]
        with suppress(CoreError):
            return all(await asyncio.gather(*asked))
        return False

    def contents() -> str:
        # A model may be reloaded while the ensemble stays loaded.
        return " ".join([content, *(served.content(step.model, step.version) for step in steps)])

    return EnsembleChain(
        config,
        signature,
        arranged.steps if arranged else steps,
        StepModels(
            arranged.connect(served, services) if arranged else served.infer_step,
            *(ready, check, contents),
        ),
        services,
        ranks,
        host.statistics_of(config),
    )


def fitted(
    config: ModelConfig, signature: Signature, steps: list[Step], models: Sequence[Signature]
) -> Signature:
    """Return the signature of an ensemble, after checking its steps. Write its `decoupled` into `config`.

    models   the signature of each step's model
    Raises CoreError(INVALID) if a step does not fit its model, for parameters that no arrangement can follow,
    and if a decoupled ensemble asks for a cache.
    """
    check_steps(signature, steps, models)
    arrangement_of(config, signature, steps, models)
    decoupled = any(model.decoupled for model in models)
    config.model_transaction_policy.decoupled = decoupled
    check_response_cache(config)
    return replace(signature, decoupled=decoupled)


def arrangement_of(
    config: ModelConfig, signature: Signature, steps: list[Step], models: Sequence[Signature | None]
) -> Arrangement | None:
    """Return the arrangement of an ensemble's steps; None if core runs them by itself.

    Raises CoreError(INVALID) for wrong parameters, and if no installed plugin reads them.
    """
    if not needs_arranging(config):
        return None
    found: Arrangement | None = plugins.ask(
        "core_arrange_ensemble", config=config, signature=signature, steps=steps, models=models
    )
    if found is None:
        text = "has loops, fallbacks or expressions as conditions, which no installed plugin reads"
        raise invalid(f"ensemble '{config.name}' {text}{plugins.install_hint('ensembles')}")
    return found


def signatures_of_steps(
    ensemble: str, steps: Sequence[Step], find: Callable[[str, int], Signature]
) -> list[Signature]:
    """Return the signature of each step's model.

    find   (model, version) → its signature; raises CoreError for an unknown one
    Raises CoreError(INVALID) that names a missing version of a known model, or else all missing models.
    """
    found, missing = [], []
    for step in steps:
        try:
            found.append(find(step.model, step.version))
        except CoreError:
            if step.version > 0 and _is_there(step.model, find):
                raise invalid(
                    f"ensemble '{ensemble}' depends on '{step.model}' whose required version "
                    f"{step.version} is not loaded: step {step.index} has it as model_version"
                ) from None
            missing.append(f"'{step.model}'")
    if missing:
        raise invalid(
            f"ensemble '{ensemble}' contains models that are not available or ambiguous: "
            + ", ".join(dict.fromkeys(missing))
        )
    return found


def _is_there(model: str, find: Callable[[str, int], Signature]) -> bool:
    """Return whether any version of the model is found."""
    try:
        find(model, NEWEST)
    except CoreError:
        return False
    return True
