"""States and metadata of models over HTTP, and KServe's list and readiness of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.errors import not_found
from core.request import NEWEST
from core.similar import did_you_mean
from frontend_tfserving.signatures import method_of, signatures_of, version_of
from frontend_tfserving.types import NUMBERS, shape_of
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.services.metadata import json_answer

if TYPE_CHECKING:
    from core.config import InputSpec, OutputSpec, Signature
    from core.lifecycle import ModelVersion
    from core.server import InferenceServer

_STATES = {
    "LOADING": "LOADING",
    "READY": "AVAILABLE",
    "UNLOADING": "UNLOADING",
    "UNAVAILABLE": "END",
}


def versions_of(server: InferenceServer, model: str, version: int = NEWEST) -> list[ModelVersion]:
    """Return the versions of a model, the highest first; one if `version` names it.

    Raises CoreError(NOT_FOUND) if there is none.
    """
    known = list(server.models.versions())
    found = [
        each
        for each in known
        if model in (each.name, each.key) and version in (NEWEST, each.version)
    ]
    if not found:
        which = f"model {model}" if version == NEWEST else f"version {version} of model {model}"
        hint = did_you_mean(model, {each.name for each in known} - {model})
        raise not_found(f"Could not find any versions of {which}{hint}")
    return sorted(found, key=lambda each: -each.version)


def state_of(version: ModelVersion) -> str:
    """Return TensorFlow's name of a state. A version that its next request loads is AVAILABLE."""
    return "AVAILABLE" if version.at_rest else _STATES[version.state]


def _serves(version: ModelVersion) -> bool:
    return state_of(version) == "AVAILABLE"


async def models(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the names of the models that serve, as KServe's protocol version 1 has it."""
    serving = {each.name for each in server.models.versions() if _serves(each)}
    return json_answer({"models": sorted(serving)})


async def model_status(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the state of each version of a model, and whether the model is ready."""
    version = version_of(server, call.model, call.version, call.captures.get("label") or "")
    found = versions_of(server, call.model, version)
    states = [
        {
            "version": str(each.version),
            "state": state_of(each),
            "status": {
                "error_code": "UNKNOWN" if each.failed else "OK",
                "error_message": each.reason if each.failed else "",
            },
        }
        for each in found
    ]
    ready = any(map(_serves, found))
    # The last two members are KServe's.
    return json_answer({"model_version_status": states, "name": call.model, "ready": ready})


async def model_metadata(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the signatures of a model: their inputs and outputs."""
    version = version_of(server, call.model, call.version, call.captures.get("label") or "")
    signature = server.models.signature(call.model, version)
    described = {
        name: _described(each, method_of(server, each))
        for name, each in signatures_of(server, call.model, version).items()
    }
    return json_answer(
        {
            "model_spec": {
                "name": signature.name,
                "signature_name": "",
                "version": str(signature.version),
            },
            "metadata": {"signature_def": {"signature_def": described}},
        }
    )


def _described(signature: Signature, method: str) -> dict[str, Any]:
    return {
        "inputs": {each.name: _tensor(signature, each) for each in signature.inputs.values()},
        "outputs": {each.name: _tensor(signature, each) for each in signature.outputs.values()},
        "method_name": method,
    }


def _tensor(signature: Signature, spec: InputSpec | OutputSpec) -> dict[str, Any]:
    sizes = [{"size": str(size), "name": ""} for size in shape_of(signature, spec)]
    return {
        "dtype": NUMBERS[spec.dtype].name,
        "tensor_shape": {"dim": sizes, "unknown_rank": False},
        "name": f"{spec.name}:0",
    }
