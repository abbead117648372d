"""Examples for models that parse them: the serialized tf.Example is the element of their only input.

Estimators of TensorFlow export such models for classify and regress.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from core import dtypes
from core.errors import invalid
from core.tensor import Tensor
from frontend_tfserving.rpc import messages

if TYPE_CHECKING:
    from core.config import InputSpec, Signature

MOST_CONTEXT_BYTES = 8 * 2**20
"""Most bytes of a context, counted for each example: every example gets a copy of it."""

MOST_CONTEXT_FEATURES = 1_000_000
"""Most features of a context, counted for each example. A feature without values has hardly any bytes."""

BYTES_PER_COPY = 64
"""Of a feature of a context for one example: joining them takes as long as reading so many bytes."""


def parsed_by_model(signature: Signature, features: Collection[str]) -> InputSpec | None:
    """Return the input that takes serialized examples; None if features are inputs of their names.

    It is the only input, of BYTES with one element for each example, and no feature has its name.
    """
    if len(signature.inputs) != 1:
        return None
    (spec,) = signature.inputs.values()
    takes = spec.dtype is dtypes.BYTES and spec.dims == (1,) and spec.name not in features
    return spec if takes and signature.max_batch_size else None


def tensor_of(spec: InputSpec, examples: Sequence[bytes]) -> Tensor:
    """Return the input with each serialized example in a row."""
    array = np.empty((len(examples), 1), object)
    array[:, 0] = examples
    return Tensor(spec.name, spec.dtype, array.shape, array=array)


def example_of(features: Mapping[str, Any]) -> messages.Example:
    """Return the message of an example in JSON: feature → value, or list of values.

    Raises CoreError(INVALID) for a feature that is neither text, bytes nor numbers, and for a wrong name.
    """
    found = messages.Example()
    for name, value in features.items():
        if not _is_unicode(name):
            raise invalid(f"the feature {name!a} has half of a surrogate pair in its name")
        values = value if type(value) is list else [value]
        kinds = set(map(type, values))
        feature = found.features.feature[name]
        if kinds <= {str, dict} and kinds:
            feature.bytes_list.value.extend(_bytes(name, each) for each in values)
        elif kinds == {int}:
            _extend(name, feature.int64_list, values)
        elif kinds <= {int, float}:  # an empty list is of no kind
            _extend(name, feature.float_list, values)
        else:
            raise invalid(
                f'the feature \'{name}\' must be text, {{"b64": "…"}} or numbers, or a list of one of them'
            )
    return found


def _is_unicode(text: str) -> bool:
    """Return whether UTF-8 can encode a text: half of a surrogate pair it cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _extend(name: str, field: Any, values: Sequence[float]) -> None:
    try:
        field.value.extend(values)
    except (ValueError, OverflowError):
        raise invalid(f"the feature '{name}' has a number that is out of range") from None


def _bytes(name: str, value: Any) -> bytes:
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass")
    text = value.get("b64")
    try:
        if value.keys() != {"b64"} or type(text) is not str:
            raise ValueError
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise invalid(f'the feature \'{name}\' has an object that is no {{"b64": "…"}}') from None
