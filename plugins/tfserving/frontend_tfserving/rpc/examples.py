"""The examples of classify and regress → tensors.

A feature is the input of its name, unless the model parses examples itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import DecodeError

from core import dtypes
from core.errors import invalid
from core.similar import did_you_mean
from core.tensor import Tensor
from frontend_tfserving.rpc import aligned, messages, uniform
from frontend_tfserving.rpc.reading import away
from frontend_tfserving.serialized import (
    BYTES_PER_COPY,
    MOST_CONTEXT_BYTES,
    MOST_CONTEXT_FEATURES,
    parsed_by_model,
    tensor_of,
)

if TYPE_CHECKING:
    from core.config import InputSpec, Signature

_LISTS = {
    "bytes_list": ("bytes", "O"),
    "float_list": ("numbers", "f"),
    "int64_list": ("whole numbers", "fiub"),
}


class Examples:
    """The examples of a request as inputs of models. They are read once for each signature. Event loop only.

    size    of the request in bytes
    tasks   how often `inputs_of` is called
    """

    def __init__(self, given: messages.EncodedInput, size: int, tasks: int = 1):
        self._given = given
        self._tasks = tasks
        self._size = max(size, _context_bytes(given))
        self._read: list[tuple[Signature, dict[str, Tensor]]] = []

    async def inputs_of(self, signature: Signature) -> dict[str, Tensor]:
        """Return the inputs, which the caller may change. Raises as the function `inputs_of`."""
        inputs = next((each for known, each in self._read if known is signature), None)
        if inputs is None:
            inputs = await away(self._size, inputs_of, self._given, signature)
            if self._tasks == 1:
                return inputs
            self._read.append((signature, inputs))
        return await away(self._size, _copied, inputs)


def _copied(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: Tensor(name, each.dtype, each.shape, array=each.array.copy())
        for name, each in inputs.items()
    }


def inputs_of(given: messages.EncodedInput, signature: Signature) -> dict[str, Tensor]:
    """Return the inputs of all examples. Raises CoreError(INVALID), which names what is wrong."""
    encoded, context = _examples(given)
    if not encoded:
        raise invalid("the request has no examples")
    if not context and (columns := _columns(encoded, signature)) is not None:
        if (spec := parsed_by_model(signature, columns)) is not None:
            return {spec.name: tensor_of(spec, encoded)}
        return {
            name: _of_column(_input(signature, name), kind, values)
            for name, (kind, values) in columns.items()
        }
    examples = [_decoded(number, each) for number, each in enumerate(encoded)]
    names = {*context, *examples[0].features.feature}
    if (spec := parsed_by_model(signature, names)) is not None:
        joined = [_joined(each, context).SerializeToString() for each in examples]
        return {spec.name: tensor_of(spec, joined)}
    rows = [{**context, **each.features.feature} for each in examples]
    for number, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            raise invalid(f"example {number} has other features than the first one")
    return {
        name: _of_features(_input(signature, name), [row[name] for row in rows]) for name in rows[0]
    }


def _context_bytes(given: messages.EncodedInput) -> int:
    """Return as how many bytes the copies of the context count, one for each example."""
    found = given.example_list_with_context
    return BYTES_PER_COPY * len(found.context.features.feature) * len(found.examples)


def _columns(encoded: Sequence[bytes], signature: Signature) -> Mapping[str, aligned.Column] | None:
    """Return the columns of a table of examples; None if each must be read by itself."""
    known = None if parsed_by_model(signature, ()) is not None else signature.inputs
    if (floats := uniform.columns_of(encoded, known)) is not None:
        return {name: ("float_list", values) for name, values in floats.items()}
    return aligned.columns_of(encoded, known) if len(encoded) >= aligned.FEWEST else None


def _examples(given: messages.EncodedInput) -> tuple[Sequence[bytes], Mapping[str, Any]]:
    if given.WhichOneof("kind") == "example_list_with_context":
        found = given.example_list_with_context
        features = len(found.context.features.feature)
        if features * len(found.examples) > MOST_CONTEXT_FEATURES:
            raise invalid(
                f"the context has {features} features for {len(found.examples)} examples; at most "
                f"{MOST_CONTEXT_FEATURES} are accepted in all: send fewer examples in a request"
            )
        if found.context.ByteSize() * len(found.examples) > MOST_CONTEXT_BYTES:
            raise invalid(
                "the context is too large for so many examples; send fewer of them in a request"
            )
        return list(found.examples), dict(found.context.features.feature)
    return list(given.example_list.examples), {}


def _decoded(number: int, encoded: bytes) -> messages.Example:
    try:
        return messages.Example.FromString(encoded)
    except DecodeError:
        raise invalid(f"example {number} of {len(encoded)} bytes is no tf.Example") from None


def _joined(example: messages.Example, context: Mapping[str, Any]) -> messages.Example:
    """Return the example with the features of the context."""
    if not context:
        return example
    found = messages.Example()
    for name, feature in {**context, **example.features.feature}.items():
        found.features.feature[name].CopyFrom(feature)
    return found


def _input(signature: Signature, name: str) -> InputSpec:
    """Return the input of a feature. Raises CoreError(INVALID) if there is none."""
    if (spec := signature.inputs.get(name)) is None:
        hint = did_you_mean(name, signature.inputs)
        raise invalid(
            f"model '{signature.name}' has no input '{name}'; it has {', '.join(signature.inputs)}{hint}"
        )
    return spec


def _of_column(spec: InputSpec, kind: str, values: Any) -> Tensor:
    """Return the tensor of a feature from its values[examples, values]."""
    _require(spec, kind)
    shape = (len(values), *_dims(spec, values.shape[1]))
    same = spec.dtype is dtypes.BYTES or values.dtype == spec.dtype.numpy
    array = values if same else _numbers(spec, values)
    return Tensor(spec.name, spec.dtype, shape, array=array.reshape(shape))


def _of_features(spec: InputSpec, features: Sequence[Any]) -> Tensor:
    """Return the tensor of a feature from those of all examples."""
    rows = [_values(spec, feature) for feature in features]
    if len({len(row) for row in rows}) > 1:
        raise invalid(f"the feature '{spec.name}' has lists of unequal lengths")
    shape = (len(rows), *_dims(spec, len(rows[0])))
    if spec.dtype is dtypes.BYTES:
        array = np.empty(len(rows) * len(rows[0]), object)
        array[:] = [value for row in rows for value in row]
    else:
        array = _numbers(spec, rows)
    return Tensor(spec.name, spec.dtype, shape, array=array.reshape(shape))


def _numbers(spec: InputSpec, rows: Any) -> Any:
    """Return the numbers as the datatype of the input. Raises CoreError(INVALID) for one out of its range."""
    dtype = spec.dtype.numpy
    if dtype.kind in "iu":
        found, limits = np.array(rows, np.int64), np.iinfo(dtype)
        fits = not found.size or (int(found.min()) >= limits.min and int(found.max()) <= limits.max)
        array = found.astype(dtype)
    else:
        found = np.array(rows, np.float64)
        with np.errstate(over="ignore"):
            array = found.astype(dtype)
        fits = dtype.kind != "f" or not (np.isinf(array) & ~np.isinf(found)).any()
    if not fits:
        raise invalid(
            f"the feature '{spec.name}' has a value outside of the range of {spec.dtype.name}"
        )
    return array


def _values(spec: InputSpec, feature: messages.Feature) -> list[Any]:
    kind = feature.WhichOneof("kind")
    if kind is None:
        raise invalid(f"the feature '{spec.name}' is empty")
    _require(spec, kind)
    return list(getattr(feature, kind).value)


def _require(spec: InputSpec, kind: str) -> None:
    """Raise CoreError(INVALID) if an input does not take the values of such a list."""
    text, fits = _LISTS[kind]
    if spec.dtype is dtypes.BF16 or spec.dtype.numpy.kind not in fits:
        raise invalid(f"the feature '{spec.name}' has {text}, the input is {spec.dtype.name}")


def _dims(spec: InputSpec, count: int) -> tuple[int, ...]:
    """Return the shape of one example with `count` values. Raises CoreError(INVALID) if there is none."""
    fixed = math.prod(size for size in spec.dims if size != -1)
    open_sizes = sum(size == -1 for size in spec.dims)
    if (open_sizes == 0 and fixed == count) or (open_sizes == 1 and fixed and count % fixed == 0):
        return tuple(count // fixed if size == -1 else size for size in spec.dims)
    raise invalid(
        f"the feature '{spec.name}' has {count} values, an example of the input has the shape "
        f"{list(spec.dims)}"
    )
