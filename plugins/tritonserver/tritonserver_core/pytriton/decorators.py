"""Decorators for inference functions: from a list of requests to arrays, and back.

The list of requests is the last positional argument of a function, arrays are keyword arguments. So a
decorator works for functions and for methods.
"""

from __future__ import annotations

import functools
import inspect
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tritonserver_core.pytriton.context import TritonContext, current_config
from tritonserver_core.pytriton.exceptions import (
    PyTritonBadParameterError,
    PyTritonRuntimeError,
    PyTritonValidationError,
)
from tritonserver_core.pytriton.grouping import ConstantPadder, group_by_values
from tritonserver_core.pytriton.model_config import BoundConfig
from tritonserver_core.pytriton.request import Request
from tritonserver_core.pytriton.special import CONTEXT, rows_of, without_special

__all__ = [
    "ConstantPadder",
    "batch",
    "fill_optionals",
    "first_value",
    "group_by_keys",
    "group_by_values",
    "pad_batch",
    "sample",
    "triton_context",
]

Function = Callable[..., Any]
Results = list[dict[str, np.ndarray]]


def _named(outputs: Any) -> Mapping[str, Any]:
    """Return outputs by name; a list or tuple is in the order of the model's outputs."""
    if isinstance(outputs, Mapping):
        return outputs
    if not isinstance(outputs, list | tuple):
        raise PyTritonValidationError(
            f"the function returned a {type(outputs).__name__}; return a dict, a list or a tuple of arrays"
        )
    names = [each.name or "" for each in current_config().outputs]
    if len(outputs) != len(names):
        raise PyTritonValidationError(
            f"the function returned {len(outputs)} arrays, the model has {len(names)} outputs: {names}"
        )
    return dict(zip(names, outputs, strict=True))


def sample(function: Function) -> Function:
    """Call the function with the arrays of a single request, as keyword arguments. Use it without batching.

    It returns a dict, or a list in the order of the outputs.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        *rest, requests = args
        result = function(*rest, **kwargs, **requests[0])
        if inspect.isgenerator(result):
            return ([_named(each)] for each in result)
        return [_named(result)]

    return call


def batch(function: Function) -> Function:
    """Call the function with the rows of all requests as one array for each input.

    All requests must have the same inputs: put `group_by_keys` before it if they differ. The outputs must
    have as many rows.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        *rest, requests = args
        names = requests[0].keys()
        if any(each.keys() != names for each in requests):
            raise PyTritonValidationError(
                "the requests of a batch have different inputs; put @group_by_keys before @batch"
            )
        joined = {name: np.concatenate([_read(each, name) for each in requests]) for name in names}
        sizes = [rows_of(each) for each in requests]
        result = function(*rest, **kwargs, **joined)
        if inspect.isgenerator(result):
            return (_split(_named(each), sizes) for each in result)
        return _split(_named(result), sizes)

    return _mark(call, function, "batch")


def _read(request: Any, name: str) -> np.ndarray:
    found: np.ndarray = request.read_only(name) if isinstance(request, Request) else request[name]
    return found


def _split(outputs: Mapping[str, np.ndarray], sizes: Sequence[int]) -> Results:
    wrong = {name: each.shape for name, each in outputs.items() if len(each) != sum(sizes)}
    if wrong:
        raise ValueError(
            f"the function returned outputs of shapes {wrong}, expected {sum(sizes)} rows in the batch"
        )
    found, first = [], 0
    for size in sizes:
        found.append({name: each[first : first + size] for name, each in outputs.items()})
        first += size
    return found


def _mark(call: Function, function: Function, name: str) -> Function:
    """Note which decorators a function has, for those whose order matters."""
    call.__decorators__ = {*getattr(function, "__decorators__", ()), name}  # type: ignore[attr-defined]
    return call


def group_by_keys(function: Function) -> Function:
    """Call the function once for each set of inputs that the requests have. Put it before `batch`."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Results:
        *rest, requests = args
        groups: dict[tuple[str, ...], list[int]] = {}
        for i, request in enumerate(requests):
            groups.setdefault(tuple(sorted(request.keys())), []).append(i)
        results: dict[int, dict[str, np.ndarray]] = {}
        for members in groups.values():
            found = function(*rest, [requests[i] for i in members], **kwargs)
            results.update(zip(members, found, strict=True))
        return [results[i] for i in range(len(requests))]

    return call


def fill_optionals(**defaults: Any) -> Callable[[Function], Function]:
    """Give requests the optional inputs that they omit. Put it before `batch`.

    defaults   input → array of one row, of the datatype and shape of that input
    """

    def decorator(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            config, requests = current_config(), args[-1]
            _check_defaults(defaults, config)
            for request in requests:
                rows = rows_of(request) if config.batching else None
                for name, value in defaults.items():
                    if name not in request:
                        request[name] = value if rows is None else np.stack([value] * rows)
            return function(*args, **kwargs)

        return call

    return decorator


def _check_defaults(defaults: Mapping[str, Any], config: BoundConfig) -> None:
    specs = {each.name: each for each in config.inputs}
    for name, value in defaults.items():
        spec = specs.get(name)
        if spec is None:
            raise PyTritonBadParameterError(f"model '{config.model_name}' has no input '{name}'")
        if not isinstance(value, np.ndarray):
            raise PyTritonBadParameterError(f"default {name}={value!r} is no numpy array")
        same = len(value.shape) == len(spec.shape) and all(
            size in (-1, found) for size, found in zip(spec.shape, value.shape, strict=True)
        )
        if value.dtype != np.dtype(spec.dtype) or not same:
            raise PyTritonBadParameterError(
                f"default '{name}' is {value.dtype}{list(value.shape)}, the input is "
                f"{np.dtype(spec.dtype)}{list(spec.shape)}"
            )


def triton_context(function: Function) -> Function:
    """Pass the argument `__triton_context__`; its `model_configs[…]` is the model's configuration."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{**kwargs, CONTEXT: TritonContext()})

    return call


def pad_batch(function: Function) -> Function:
    """Repeat the last row up to the next preferred batch size, or max_batch_size. Put it after `batch`.

    The outputs are cut to the rows of the requests.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        inputs = without_special(kwargs)
        config, rows = current_config(), rows_of(inputs)
        preferred = config.batcher.preferred_batch_size if config.batcher is not None else None
        sizes = sorted(preferred or ())
        place = bisect_left(sizes, rows)
        size = sizes[place] if place < len(sizes) else max(config.max_batch_size, rows)
        padded = {
            name: np.concatenate([each, np.repeat(each[-1:], size - rows, axis=0)])
            for name, each in inputs.items()
        }
        result = _named(function(*args, **{**kwargs, **padded}))
        return {name: each[:rows] for name, each in result.items()}

    return call


def first_value(
    *keys: str, squeeze_single_values: bool = True, strict: bool = True
) -> Callable[[Function], Function]:
    """Replace inputs by the value of their first row, for values that all rows share.

    squeeze_single_values   whether an array with one element becomes that element
    strict                  whether rows with different values are an error
    """
    if CONTEXT in keys:
        raise PyTritonBadParameterError(f"'{CONTEXT}' is no input")

    def first(inputs: Any) -> Any:
        for key in keys:
            if key not in inputs:
                continue
            values = inputs[key]
            axis = None if values.dtype == object else 0
            if strict and len(np.unique(values, axis=axis)) > 1:
                raise PyTritonRuntimeError(
                    f"the rows of input '{key}' have different values: {values!r}; send equal ones, or use "
                    "strict=False"
                )
            value = values[0]
            if squeeze_single_values and isinstance(value, np.ndarray) and value.size == 1:
                value = value.reshape(())[()]
            inputs[key] = value
        return inputs

    def decorator(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not current_config().batching:
                raise PyTritonRuntimeError("@first_value needs a model with batching=True")
            if without_special(kwargs):
                return function(*args, **first(kwargs))
            *rest, requests = args
            return function(*rest, [first(each) for each in requests], **kwargs)

        return call

    return decorator
