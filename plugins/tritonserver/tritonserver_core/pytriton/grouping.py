"""group_by_values: rows with equal values of some inputs together, in one call of the function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tritonserver_core.pytriton.exceptions import PyTritonRuntimeError
from tritonserver_core.pytriton.special import CONTEXT, rows_of, without_special

Function = Callable[..., Any]
Results = Sequence[Mapping[str, np.ndarray]]


def group_by_values(
    *keys: str, pad_fn: Callable[[Results], Results] | None = None
) -> Callable[[Function], Function]:
    """Call the function once for each combination of values of these inputs. Put it after `batch`.

    pad_fn   makes the results of all calls have equal shapes, such as ConstantPadder()
    """

    def decorator(function: Function) -> Function:
        if "batch" in getattr(function, "__decorators__", ()):
            raise PyTritonRuntimeError(
                "put @group_by_values below @batch: it needs the whole batch"
            )

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
            inputs = without_special(kwargs)
            special = {CONTEXT: kwargs[CONTEXT]} if CONTEXT in kwargs else {}
            groups: dict[tuple[bytes, ...], list[int]] = {}
            for row in range(rows_of(inputs)):
                groups.setdefault(tuple(_key(inputs[key][row]) for key in keys), []).append(row)
            results: Results = [
                function(*args, **{name: each[rows] for name, each in inputs.items()}, **special)
                for _, rows in sorted(groups.items())
            ]
            if pad_fn is not None:
                results = pad_fn(results)
            order = np.concatenate([rows for _, rows in sorted(groups.items())])
            return {
                name: np.concatenate([each[name] for each in results])[np.argsort(order)]
                for name in results[0]
            }

        return call

    return decorator


def _key(value: Any) -> bytes:
    """Return bytes that only equal values have."""
    array = np.asarray(value)
    if array.dtype == object or array.dtype.kind in "SU":
        texts = [
            each if isinstance(each, bytes) else str(each).encode()
            for each in array.ravel().tolist()
        ]
        # The lengths of several elements follow: no other elements join to the same bytes.
        lengths = ",".join(str(len(each)) for each in texts).encode()
        return texts[0] if len(texts) == 1 else b"\0".join([*texts, lengths])
    return array.tobytes()


class ConstantPadder:
    """Pads arrays of several results with a value, at the end of each dimension but the first.

    pad_value   for numbers; text is padded with empty elements
    """

    def __init__(self, pad_value: Any = 0):
        self.pad_value = pad_value

    def __call__(self, batches: Results) -> Results:
        """Return the results with equal shapes and datatypes for each name.

        Raises PyTritonRuntimeError if an array has another kind of datatype in another result.
        """
        names = dict.fromkeys(name for each in batches for name in each)
        padded = {name: self._padded(name, batches) for name in names}
        return [
            {name: padded[name][i] for name in names if name in each}
            for i, each in enumerate(batches)
        ]

    def _padded(self, name: str, batches: Results) -> dict[int, np.ndarray]:
        arrays = {i: each[name] for i, each in enumerate(batches) if name in each}
        kinds = {each.dtype.kind for each in arrays.values()}
        same = len({each.dtype for each in arrays.values()}) == 1
        if len(kinds) > 1 or not (same or kinds <= set("SU")):
            raise PyTritonRuntimeError(
                f"'{name}' has the datatypes {sorted({str(each.dtype) for each in arrays.values()})}; all "
                "must be the same"
            )
        dtype = np.result_type(*arrays.values()) if kinds <= set("SU") else None
        shape = np.max([each.shape[1:] for each in arrays.values()], axis=0, initial=0)
        value = b"" if kinds <= set("SUO") else self.pad_value
        return {
            i: np.pad(
                each if dtype is None else each.astype(dtype),
                [
                    (0, 0),
                    *((0, most - size) for most, size in zip(shape, each.shape[1:], strict=True)),
                ],
                constant_values=value,
            )
            for i, each in arrays.items()
        }
