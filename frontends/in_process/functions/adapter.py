"""FunctionAdapter: arrays → arguments of a function, its result → outputs by name.

instance ─► [FunctionAdapter] ─► function of the program ─► [FunctionAdapter] ─► outputs. Any thread.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from core.devices.dlpack import described
from core.dtypes import BF16, BYTES, DataType
from core.errors import CoreError, internal, invalid
from core.request import InferenceRequest
from core.tensor import Tensor
from frontends.in_process.functions.specs import Spec

Function = Callable[..., Any]
FunctionKind = Literal["function", "function_async", "function_stream", "function_async_stream"]

REQUESTS = "requests"  # the keyword argument for the requests of a batch


def kind_of(function: Function) -> FunctionKind:
    """Return the word for a function or callable object, which is also the name of its backend.

    The words differ by whether it is async, and whether it yields.
    """
    call = getattr(function, "__call__", None)  # noqa: B004  the method of an object
    for each in (function, call):
        if inspect.isasyncgenfunction(each):
            return "function_async_stream"
        if inspect.iscoroutinefunction(each):
            return "function_async"
        if inspect.isgeneratorfunction(each):
            return "function_stream"
    return "function"


class FunctionParameters:
    """The parameters of a function.

    Inputs are passed by position if Python cannot inspect them, or if one of them takes no keyword.
    """

    def __init__(self, function: Function):
        # Whether it takes no keywords (ufuncs of numpy, some compiled functions).
        self.by_position = True
        self.defaults: set[str] = set()  # names of the parameters that have a default
        self.names: list[str] = []
        self._takes_any = True
        try:
            found = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return
        self.by_position = any(
            each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL) for each in found
        ) or isinstance(function, np.ufunc)
        self._takes_any = any(each.kind is each.VAR_KEYWORD for each in found)
        named = [each for each in found if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
        self.names = [each.name for each in named]
        self.defaults = {each.name for each in named if each.default is not each.empty}

    def check(self, model: str, inputs: Mapping[str, Spec], with_requests: bool) -> None:
        """Raise CoreError(INVALID) if the function cannot be called with these inputs by name.

        with_requests   whether it also gets the argument `requests`
        A function that takes arguments by position is not checked.
        """
        if self.by_position:
            return
        given = [*inputs, *([REQUESTS] if with_requests else [])]
        unknown = [name for name in given if name not in self.names]
        if unknown and not self._takes_any:
            raise invalid(
                f"the function for model '{model}' has no parameter '{unknown[0]}'; its parameters are "
                f"{', '.join(self.names) or 'none'}"
            )
        missing = [each for each in self.names if each not in given and each not in self.defaults]
        if missing:
            raise invalid(
                f"the function for model '{model}' needs '{missing[0]}', which is none of the inputs "
                f"{', '.join(inputs) or '(there are none)'}"
            )


@dataclass(frozen=True)
class FunctionAdapter:
    """Calls the functions of one model and checks their results."""

    model: str  # for errors
    specs: Mapping[str, Spec]  # of the outputs by name, in the order of a returned tuple
    batches: bool  # whether the first dimension of arrays is the rows
    positions: Sequence[str]  # inputs in the order of positional arguments; () for keywords
    with_requests: bool  # whether the functions also get the requests

    def call(
        self,
        function: Function,
        arrays: Mapping[str, np.ndarray],
        requests: Sequence[InferenceRequest],
    ) -> Any:
        more = {REQUESTS: requests} if self.with_requests else {}
        if self.positions:
            given = [arrays[name] for name in self.positions if name in arrays]
            return function(*given, **more)
        return function(**arrays, **more)

    def outputs(self, result: Any, rows: int) -> dict[str, Any]:
        """Return the outputs in a result of the function, by name.

        rows   expected first dimension of each array, if the function takes batches; else ignored
        An array on a device is returned unchanged, any other value as a numpy array of the output's datatype.
        Raises CoreError(INTERNAL) if a name, datatype or shape differs from the specs.
        """
        return {name: self._array(name, value, rows) for name, value in self._named(result).items()}

    def tensors(self, result: Any, rows: int) -> list[Tensor]:
        """Return the outputs in a function's result as tensors. `rows` and errors are as in `outputs`."""
        return [
            Tensor(name, self.specs[name].dtype, array.shape, array=array)
            if type(array) is np.ndarray
            else Tensor.of(name, array)
            for name, array in self.outputs(result, rows).items()
        ]

    def _named(self, result: Any) -> Mapping[str, Any]:
        if type(result) is np.ndarray and len(self.specs) == 1:
            return {next(iter(self.specs)): result}
        names = list(self.specs)
        if isinstance(result, Mapping):
            if set(result) != set(names):
                raise self._wrong(
                    f"returned a dict of {_listed(result)}; the outputs are {_listed(names)}"
                )
            return result
        if isinstance(result, tuple | list):
            if len(result) != len(names):
                raise self._wrong(
                    f"returned a {type(result).__name__} of {len(result)}; the outputs are "
                    f"{_listed(names)}"
                )
            return dict(zip(names, result, strict=True))
        if result is None or len(names) != 1:
            raise self._wrong(
                f"returned a {type(result).__name__}: return an array, a tuple or a dict of "
                f"{_listed(names)}"
            )
        return {names[0]: result}

    def _array(self, name: str, value: Any, rows: int) -> Any:
        spec = self.specs[name]
        dtype = spec.dtype
        if type(value) is not np.ndarray or value.dtype is not dtype.numpy or dtype is BYTES:
            value = self._converted(name, value, dtype)
        shape = value.shape if type(value) is np.ndarray else described(value)[1]
        wanted = (rows, *spec.shape) if self.batches else spec.shape
        if wanted != shape and (
            len(wanted) != len(shape)
            or any(size not in (-1, found) for size, found in zip(wanted, shape, strict=True))
        ):
            raise self._wrong(
                f"gave output '{name}' with shape {list(shape)}, which should be {list(wanted)}"
            )
        return value

    def _converted(self, name: str, value: Any, dtype: DataType) -> Any:
        """Return a value as a numpy array of `dtype`, but an array on a device unchanged.

        Raises CoreError(INTERNAL) for an array of another datatype. numpy converts Python's numbers: an
        integer type cuts the fraction of a float.
        """
        if not isinstance(value, np.ndarray) and not hasattr(value, "__dlpack__"):
            try:
                # Numbers of Python have no fixed width.
                value = np.asarray(value, dtype.numpy)
            except (TypeError, ValueError) as error:
                raise self._wrong(f"gave output '{name}' as {value!r}: {error}") from None
        tensor = Tensor.of(name, value, BF16 if dtype is BF16 else None)
        if tensor.dtype is not dtype:
            raise self._wrong(
                f"gave output '{name}' as {tensor.dtype}, which should be {dtype}; "
                f".astype(np.{dtype.numpy}) converts it"
            )
        if tensor.device is not None:
            return value
        return tensor.array.astype(dtype.numpy, copy=False)  # another byte order

    def _wrong(self, text: str) -> CoreError:
        return internal(f"the function of model '{self.model}' {text}")


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "nothing"
