"""InferenceResponse: a response to one request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backend_python.api.errors import TritonError, TritonModelException
from backend_python.api.tensor import Tensor
from backend_python.strings import speakable

if TYPE_CHECKING:
    import cython
else:
    from backend_python import uncompiled as cython

Parameters = dict[str, Any]


@cython.freelist(64)
@cython.cclass
class InferenceResponse:
    """Output tensors, or an error; the client receives only the error if both are set.

    parameters   {str: bool | int | float | str}, sent with the outputs
    """

    _outputs: list[Tensor]
    _error: TritonError | None
    _parameters: str  # JSON, "" for none

    def __init__(
        self,
        output_tensors: Sequence[Tensor] = (),
        error: TritonError | None = None,
        parameters: Parameters | None = None,
    ):
        if not isinstance(output_tensors, (list, tuple)):
            raise TypeError(
                f"InferenceResponse: output_tensors must be a list, found {type(output_tensors)}"
            )
        for tensor in output_tensors:
            if tensor is None:
                raise TritonModelException(
                    "Output tensor for inference response should not be empty."
                )
            if type(tensor) is not Tensor and not isinstance(tensor, Tensor):
                raise TypeError(
                    "InferenceResponse: output_tensors must be a list of Tensor, "
                    f"found {type(tensor)} in it"
                )
        if error is not None and not isinstance(error, TritonError):
            raise TypeError(f"InferenceResponse: error must be a TritonError, found {type(error)}")
        self._outputs = list(output_tensors)
        self._error = error
        self._parameters = parameters_json(parameters) if parameters is not None else ""

    def output_tensors(self) -> list[Tensor]:
        return self._outputs

    def has_error(self) -> bool:
        return self._error is not None

    def error(self) -> TritonError | None:
        return self._error

    def parameters(self) -> str:
        """Return the parameters as a JSON object."""
        return self._parameters or "{}"


def parameters_json(parameters: Any) -> str:
    """Return the parameters of a request or a response as JSON; "" for none.

    Raises TritonModelException for a key or a value that the protocol cannot represent.
    """
    if not isinstance(parameters, dict):
        raise TritonModelException(f"Expect parameters to be a dict, found {type(parameters)}")
    for name, value in parameters.items():
        if not isinstance(name, str):
            raise TritonModelException(
                f"Expect parameters keys to have type str, found type {type(name)}"
            )
        if not isinstance(value, (bool, int, float, str)):
            raise TritonModelException(
                "Expect parameters values to have type bool/int/float/str, "
                f"found type {type(value)}"
            )
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise TritonModelException(
                f"Expect parameters to fit in 64 bits, found {value} for {name!a}"
            )
        for text in (name, value):
            if isinstance(text, str) and speakable(text) != text:
                raise TritonModelException(
                    f"Expect parameters to be text that UTF-8 can carry, found {text!a}"
                )
    return json.dumps(parameters) if parameters else ""
