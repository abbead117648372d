"""Rules of ensemble_scheduling that need no other model: fields, steps, conditions and data flow."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from core.config.autofill import ENSEMBLE
from core.config.conditions import conditions_of, needs_arranging
from core.config.messages import ModelConfig
from core.errors import CoreError, invalid


def check_ensemble(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) for an ensemble with a wrong field, step or condition, or an unused tensor.

    Also if only one of platform "ensemble" and ensemble_scheduling is there. If a plugin arranges the steps,
    conditions and tensors are not checked here.
    """
    if not config.HasField("ensemble_scheduling"):
        if config.platform == ENSEMBLE:
            raise invalid(
                f"ensemble scheduling must be set for ensemble {config.name} whose platform is "
                f"{ENSEMBLE}"
            )
        return
    _check_fields(config)
    _check_steps(config)
    if not needs_arranging(config):
        _check_conditions(config)
        check_flow(config, {index: {each.tensor} for index, each in conditions_of(config).items()})


def _check_fields(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) without platform "ensemble" or steps, and for groups, optimization, warmup."""
    name = config.name
    if config.platform != ENSEMBLE:
        raise invalid(
            f"ensemble scheduling cannot be set for model '{name}' whose platform is not {ENSEMBLE}"
        )
    if config.instance_group:
        raise invalid(f"instance group should not be specified for ensemble '{name}'")
    if config.HasField("optimization"):
        raise invalid(f"optimization should not be specified for ensemble '{name}'")
    if config.model_warmup:
        raise invalid(f"model_warmup can not be specified for ensemble '{name}'")
    if not config.ensemble_scheduling.step:
        raise invalid(f"must specify 'step' for ensemble '{name}'")


def _check_steps(config: ModelConfig) -> None:
    written = set()
    for index, step in enumerate(config.ensemble_scheduling.step):
        for field in ("model_name", "input_map", "output_map"):
            if not getattr(step, field):
                raise invalid(f"must specify '{field}' in step {index} of ensemble '{config.name}'")
        if step.model_version < -1:
            raise invalid(
                f"ensemble '{config.name}' depends on '{step.model_name}' whose required version "
                f"{step.model_version} is not loaded: step {index} has it as model_version; -1 is the "
                "newest"
            )
        for tensor in step.output_map.values():
            if tensor in written:
                raise invalid(
                    f"ensemble tensor '{tensor}' can appear in an output map only once for "
                    f"ensemble '{config.name}' step {index}"
                )
            written.add(tensor)


def _check_conditions(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) if a condition names no input and no tensor that a step writes."""
    there = [io.name for io in config.input]
    for step in config.ensemble_scheduling.step:
        there += sorted(step.output_map.values())
    for index, condition in conditions_of(config).items():
        if condition.tensor not in there:
            step = config.ensemble_scheduling.step[index]
            raise invalid(
                f"in ensemble '{config.name}', step {index} (model '{step.model_name}'): no input and "
                f"no step makes '{condition.tensor}', the condition; there are {', '.join(there)}"
            )


def check_flow(
    config: ModelConfig, reads: Mapping[int, Collection[str]], used: Collection[str] = ()
) -> None:
    """Raise CoreError(INVALID) unless every input is used, every output written, other tensors both.

    reads   index of a step → tensors that must be known before its outputs are, besides its inputs
    used    tensors with other uses
    """
    sources = _sources(config, reads)
    used = {tensor for tensors in sources.values() for tensor in tensors}.union(used)
    tensors = dict.fromkeys([*sources, *(tensor for found in sources.values() for tensor in found)])
    for io in config.input:
        if io.name not in tensors and io.name not in used:
            raise invalid(f"ensemble input '{io.name}' for ensemble '{config.name}' is not used")
    ready = _ready(config, sources)
    outputs = dict.fromkeys(io.name for io in config.output)
    for name in outputs:
        if name not in tensors:
            raise invalid(f"ensemble output '{name}' for ensemble '{config.name}' is not used")
        if name not in ready:
            raise _not_written(name, config.name, sources, ready)
    for tensor in tensors:
        if tensor not in outputs and (tensor not in ready or tensor not in used):
            raise invalid(f"ensemble tensor '{tensor}' is unused in ensemble '{config.name}'")


def _sources(config: ModelConfig, reads: Mapping[int, Collection[str]]) -> dict[str, list[str]]:
    """Return each tensor that a step writes → the tensors that this step reads, its condition included."""
    sources = {}
    for index, step in enumerate(config.ensemble_scheduling.step):
        needed = set(step.input_map.values()).union(reads.get(index, ()))
        for written in sorted(step.output_map.values()):
            sources[written] = sorted(needed)
    return sources


def _ready(config: ModelConfig, sources: dict[str, list[str]]) -> set[str]:
    """Return the inputs and all tensors that have a value after every step that can run has run."""
    ready = {io.name for io in config.input}
    while new := {
        tensor
        for tensor, needed in sources.items()
        if tensor not in ready and ready.issuperset(needed)
    }:
        ready |= new
    return ready


def _not_written(
    output: str, ensemble: str, sources: dict[str, list[str]], ready: set[str]
) -> CoreError:
    """Return the error for an output without value; it names the missing tensor where its chain begins."""
    last, seen = output, set[str]()
    while missing := [
        tensor for tensor in sources.get(last, ()) if tensor not in ready and tensor not in seen
    ]:
        last = missing[0]
        seen.add(last)
    text = f"output '{output}' for ensemble '{ensemble}' is not written"
    if last != output:
        text += f": at least one of its depending tensors, '{last}', is not connected"
    return invalid(text)
