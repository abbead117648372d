"""Find a tensor or a configuration entry by its name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from backend_python.api.request import InferenceRequest
from backend_python.api.response import InferenceResponse
from backend_python.api.tensor import Tensor


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> Tensor | None:
    """Return the input of that name; None if the request has none."""
    if type(inference_request) is InferenceRequest and type(name) is str:
        return _tensor(_inputs(inference_request), name)
    return _asked(inference_request.inputs(), name)


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Tensor | None:
    """Return the output of that name; None if the response has none."""
    if type(inference_response) is InferenceResponse and type(name) is str:
        return _tensor(_outputs(inference_response), name)
    return _asked(inference_response.output_tensors(), name)


def _inputs(request: InferenceRequest) -> list[Tensor]:
    """Return the inputs. In compiled code the argument has a C type, so that no attribute is looked up."""
    return request._inputs


def _outputs(response: InferenceResponse) -> list[Tensor]:
    return response._outputs


def _tensor(tensors: list[Tensor], name: str) -> Tensor | None:
    for tensor in tensors:
        if tensor._name == name:
            return tensor
    return None


def _asked(tensors: Iterable[Tensor], name: str) -> Tensor | None:
    """Return the tensor of that name by its public methods: a model may pass an object of its own class."""
    for tensor in tensors:
        if tensor.name() == name:
            return tensor
    return None


def get_input_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the entry of that name in `input` of a configuration; None if there is none."""
    return _entry(model_config.get("input", ()), name)


def get_output_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the entry of that name in `output` of a configuration; None if there is none."""
    return _entry(model_config.get("output", ()), name)


def using_decoupled_model_transaction_policy(model_config: dict[str, Any]) -> bool:
    """Return whether the configuration declares the model decoupled."""
    policy: dict[str, bool] = model_config.get("model_transaction_policy", {})
    return policy.get("decoupled", False)


def _entry(entries: Iterable[dict[str, Any]], name: str) -> dict[str, Any] | None:
    return next((entry for entry in entries if entry["name"] == name), None)
