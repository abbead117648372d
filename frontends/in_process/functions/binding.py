"""A function and its settings ─► [bound_function] ─► BoundFunction, with a model configuration."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf import text_format

from core import config as configuration
from core.config import ModelConfig
from core.errors import invalid
from core.tensor import is_on_device
from frontends.in_process.functions.adapter import (
    Function,
    FunctionAdapter,
    FunctionKind,
    FunctionParameters,
    kind_of,
)
from frontends.in_process.functions.specs import Spec, Specs, spec_of_array, specs_of
from frontends.in_process.values import tensor_of

PLACEMENTS = ("thread", "inline", "auto")
MEMORIES = ("host", "device")
DEFAULT_MAX_BATCH_SIZE = 64


@dataclass(frozen=True)
class BoundFunction:
    """A function that is served as a model."""

    name: str
    functions: tuple[Function, ...]  # one for each instance
    kind: FunctionKind  # of all functions; the name of their backend
    adapter: FunctionAdapter
    placement: str  # of the instances; see core.ModelInstance
    config_text: str  # the model's config.pbtxt
    stamp: str  # unique for each binding
    memory: str  # of the instances; see core.ModelInstance


@dataclass(frozen=True, kw_only=True)
class FunctionSettings:
    """The arguments of Server.bind, which describes them, without the name and the function."""

    inputs: Specs | None
    outputs: Specs | None
    example: Mapping[str, Any] | None
    batching: bool
    max_batch_size: int | None
    max_queue_delay_microseconds: int
    preferred_batch_size: Sequence[int]
    instances: int
    placement: str
    requests: bool
    config: Mapping[str, Any] | None
    memory: str

    def check(self, name: str) -> None:
        """Raise CoreError(INVALID) for settings that no function can have."""
        sizes = (
            self.max_batch_size or self.max_queue_delay_microseconds or self.preferred_batch_size
        )
        if not self.batching and sizes:
            raise invalid(f"model '{name}': sizes and delays of batches need batching=True")
        if self.max_batch_size is not None and self.batching and not _is_count(self.max_batch_size):
            raise invalid(f"model '{name}': max_batch_size={self.max_batch_size!r}: give 1 or more")
        if not _is_count(self.instances):
            raise invalid(f"model '{name}': instances={self.instances!r}: give 1 or more")
        if self.placement not in PLACEMENTS:
            raise invalid(f"placement='{self.placement}' is none of {', '.join(PLACEMENTS)}")
        if self.memory not in MEMORIES:
            raise invalid(f"memory='{self.memory}' is none of {', '.join(MEMORIES)}")


def bound_function(
    name: str, function: Function | Sequence[Function], settings: FunctionSettings
) -> BoundFunction:
    """Return `function` with the configuration of its model.

    If the settings have no outputs, call the function once with the example, on this thread, to find them.
    Raises CoreError(INVALID) for invalid arguments, and what the function raises in that call.
    """
    if not isinstance(name, str):
        raise invalid(f"a function is bound to the name {name!r}: give a str")
    settings.check(name)
    functions = _functions(name, function, settings.instances)
    kind = kind_of(functions[0])
    examples = _examples(settings)
    parameters = FunctionParameters(functions[0])
    inputs = _inputs(name, settings, examples, parameters.defaults)
    parameters.check(name, inputs, settings.requests)
    outputs = {} if settings.outputs is None else specs_of("output", settings.outputs)
    adapter = FunctionAdapter(
        name,
        outputs,
        batches=settings.batching,
        positions=tuple(inputs) if parameters.by_position else (),
        with_requests=settings.requests,
    )
    if settings.outputs is None:
        found = _outputs_of_example(adapter, functions[0], kind, examples, settings.batching)
        outputs.update(found)
    message = _message(name, kind, inputs, outputs, settings)
    if not message.instance_group:
        message.instance_group.add(kind="KIND_CPU", count=len(functions))
    return BoundFunction(
        name,
        functions,
        kind,
        adapter,
        settings.placement,
        text_format.MessageToString(message),
        uuid.uuid4().hex,
        settings.memory,
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _functions(
    name: str, function: Function | Sequence[Function], instances: int
) -> tuple[Function, ...]:
    functions: tuple[Any, ...] = (
        tuple(function) if isinstance(function, list | tuple) else (function,) * instances
    )
    if not functions or not all(callable(each) for each in functions):
        raise invalid(
            f"model '{name}' is bound to {function!r}: give a function, or a list of functions with one "
            "for each instance"
        )
    if len(functions) > 1 and instances not in (1, len(functions)):
        raise invalid(
            f"model '{name}' has {len(functions)} functions and instances={instances}: leave one out"
        )
    if len({kind_of(each) for each in functions}) > 1:
        raise invalid(f"the functions of model '{name}' are of different kinds: all must be alike")
    return functions


def _examples(settings: FunctionSettings) -> dict[str, np.ndarray]:
    example = settings.example or {}
    found = {name: tensor_of(name, value).array for name, value in example.items()}
    for name, array in found.items():
        if settings.batching and not array.shape:
            raise invalid(
                f"the example of input '{name}' has no dimension of rows: batching needs one"
            )
    return found


def _inputs(
    name: str, settings: FunctionSettings, examples: Mapping[str, np.ndarray], defaults: Set[str]
) -> dict[str, Spec]:
    """Return the specs of the inputs from the settings, or if they have none, from the example.

    Raises CoreError(INVALID) if both are missing.

    defaults   parameters of the function that have a default; an input of such a name is optional
    """
    if settings.inputs is None and not examples:
        raise invalid(
            f"model '{name}' has no inputs: give them, such as inputs={{'x': ('FP32', [16])}}, or an "
            "example, such as example={'x': array}"
        )
    found = (
        _specs_of(examples, settings.batching)
        if settings.inputs is None
        else specs_of("input", settings.inputs)
    )
    return {
        each: spec._replace(optional=spec.optional or each in defaults)
        for each, spec in found.items()
    }


def _specs_of(arrays: Mapping[str, np.ndarray], batching: bool) -> dict[str, Spec]:
    return {name: spec_of_array(array, batching) for name, array in arrays.items()}


def _outputs_of_example(
    adapter: FunctionAdapter,
    function: Function,
    kind: FunctionKind,
    examples: Mapping[str, np.ndarray],
    batching: bool,
) -> dict[str, Spec]:
    """Call the function with the example, and return the specs of its outputs.

    The names are those of a returned dict, y0, y1, … for a returned tuple or list, or y. Raises
    CoreError(INVALID) without an example and for a function that is async or yields, and what the function
    raises.
    """
    if not examples or kind != "function":
        raise invalid(
            f"model '{adapter.model}' has no outputs: give them, such as outputs={{'y': ('FP32', [16])}}"
            + ("" if kind == "function" else "; an example tells them of plain functions only")
        )
    result = adapter.call(function, examples, ())
    if not isinstance(result, Mapping):
        several = isinstance(result, tuple | list)
        result = {f"y{i}": each for i, each in enumerate(result)} if several else {"y": result}
    arrays = {
        name: tensor_of(name, value if is_on_device(value) else np.asarray(value)).array
        for name, value in result.items()
    }
    return _specs_of(arrays, batching)


def _message(
    name: str,
    kind: FunctionKind,
    inputs: Mapping[str, Spec],
    outputs: Mapping[str, Spec],
    settings: FunctionSettings,
) -> ModelConfig:
    message = ModelConfig(name=name, backend=kind)
    for each, spec in inputs.items():
        message.input.add(
            name=each, data_type=spec.dtype.number, dims=spec.shape, optional=spec.optional
        )
    for each, spec in outputs.items():
        message.output.add(name=each, data_type=spec.dtype.number, dims=spec.shape)
    more = _more(name, settings.config)
    if settings.batching:
        message.max_batch_size = settings.max_batch_size or DEFAULT_MAX_BATCH_SIZE
        if not more.HasField("sequence_batching"):
            batching = message.dynamic_batching
            batching.max_queue_delay_microseconds = settings.max_queue_delay_microseconds
            batching.preferred_batch_size.extend(settings.preferred_batch_size)
    message.model_transaction_policy.decoupled = kind.endswith("stream")
    message.MergeFrom(more)
    return message


def _more(name: str, config: Mapping[str, Any] | None) -> ModelConfig:
    if not config:
        return ModelConfig()
    if taken := {"name", "backend", "platform", "input", "output"} & set(config):
        raise invalid(
            f"config of model '{name}' has '{sorted(taken)[0]}', which bind says in another way"
        )
    return configuration.parse_json(json.dumps(config), f"config of model '{name}'")
