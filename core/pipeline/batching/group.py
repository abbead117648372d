"""GroupKey: decides which requests may share a batch."""

from __future__ import annotations

from core.config.signature import Signature
from core.request import InferenceRequest


class GroupKey:
    """Function of a request; requests with equal keys may share a batch. Create it with `group_key`.

    optional        whether the requests must have the same inputs, since some are optional
    variable        names of the inputs whose shapes behind the batch dimension must be equal
    shape_tensors   names of the inputs whose values must be equal
    """

    def __init__(self, optional: bool, variable: list[str], shape_tensors: list[str]):
        self._optional = optional
        self._variable = variable
        self._shape_tensors = shape_tensors

    def __call__(self, request: InferenceRequest) -> object:
        return self.of(request)

    def of(self, request: InferenceRequest) -> object:
        """Return the key of an admitted request, to compare with other requests of the same model."""
        inputs = request.inputs
        parts: list[object] = []
        for name in self._variable:
            tensor = inputs.get(name)
            if tensor is not None:
                parts.append(tensor.shape[1:])
        if self._optional:
            parts.append(sorted(inputs))
        for name in self._shape_tensors:
            tensor = inputs.get(name)
            if tensor is not None:
                parts.append(bytes(tensor.raw))
        return parts


def group_key(signature: Signature) -> GroupKey | None:
    """Return the GroupKey of a model; None if all of its requests may share a batch.

    Inputs with a variable dimension must have equal shapes, unless they may be ragged. Requests to a model
    with optional inputs must have the same inputs. Shape tensors must have equal values.
    """
    inputs = signature.inputs.values()
    optional = any(spec.optional for spec in inputs)
    variable = [spec.name for spec in inputs if -1 in spec.dims and not spec.ragged]
    shape_tensors = [spec.name for spec in inputs if spec.shape_tensor]
    if not (optional or variable or shape_tensors):
        return None
    return GroupKey(optional, variable, shape_tensors)
