"""The description of the models that serve, as OpenAPI 3.1: what the page /docs shows.

Signature of each model ─► [models_description] ─► /docs/openapi.json

Each model has its own paths, with the names, datatypes and shapes of its tensors. The examples are complete
requests, which a client may send as they are: each number is 0 or 0.5, each boolean false, each text "text".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import core
from core import dtypes
from core.config import InputSpec, Signature
from core.config.signature import OutputSpec
from core.dtypes import DataType

MOST_EXAMPLE = 4096  # elements of all inputs of an example; larger ones would make the page slow
_BINARY_ONLY = (dtypes.FP16, dtypes.BF16)  # have no JSON
_LAST_STEP = {"sequence_id": 1, "sequence_start": True, "sequence_end": True}
_UPLOADS = (dtypes.BYTES, dtypes.UINT8)  # of which a part of a form may be a file

Json = dict[str, Any]


@dataclass(frozen=True)
class DescribedModel:
    """One model that serves.

    path          of its endpoints, such as /v2/models/iris
    platform      name of its platform or backend
    versions      numbers of the versions that serve, as text
    is_sequence   whether its requests need the parameters of a sequence
    """

    path: str
    signature: Signature
    platform: str
    versions: Sequence[str]
    is_sequence: bool = False


def model_path(name: str) -> str:
    return f"/v2/models/{quote(name, safe='')}"


def models_description(models: Iterable[DescribedModel], security: Mapping[str, Json]) -> Json:
    """Return the OpenAPI document of the models, with a tag and the paths of each.

    security   name → security scheme of OpenAPI: each is a header that callers must send; may be empty
    """
    paths: Json = {}
    tags = []
    for model in models:
        tags.append({"name": model.signature.name, "description": _about(model)})
        paths.update(_paths(model))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Models of this server",
            "version": core.__version__,
            "description": "" if tags else "No model serves.",
        },
        "tags": tags,
        "paths": paths,
        "security": [{name: [] for name in security}] if security else [],
        "components": {
            "securitySchemes": dict(security),
            "schemas": {
                "Error": {
                    "type": "object",
                    "properties": {"error": {"type": "string"}},
                    "required": ["error"],
                }
            },
        },
    }


def _about(model: DescribedModel) -> str:
    known = model.signature.inputs.values(), model.signature.outputs.values()
    takes, gives = (
        ", ".join(_tensor_text(spec, model.signature) for spec in each) for each in known
    )
    versions = "version" if len(model.versions) == 1 else "versions"
    return f"{model.platform}, {versions} {', '.join(model.versions)}. {takes or 'no inputs'} → {gives}"


def _tensor_text(spec: InputSpec | OutputSpec, signature: Signature) -> str:
    return f"`{spec.name}` {spec.dtype.name} {list(_dims(spec, signature))}"


def _dims(spec: InputSpec | OutputSpec, signature: Signature) -> tuple[int, ...]:
    """Return a tensor's shape for clients: -1 is any size.

    The batch comes first if the model has batches, except for a shape tensor.
    """
    has_batch = signature.max_batch_size > 0 and not getattr(spec, "shape_tensor", False)
    return (-1, *spec.dims) if has_batch else tuple(spec.dims)


def _paths(model: DescribedModel) -> Json:
    path, name = model.path, model.signature.name
    paths: Json = {}
    if not model.signature.decoupled:
        paths[f"{path}/infer"] = {"post": _infer(model)}
        paths[f"{path}/generate"] = {"post": _generate(model, f"Ask {name} in plain JSON")}
    paths[f"{path}/generate_stream"] = {
        "post": _generate(model, f"Ask {name}, and get an event for each response", stream=True)
    }
    for end, what in (
        ("", "inputs and outputs"),
        ("/config", "configuration"),
        ("/ready", "state"),
    ):
        paths[path + end] = {"get": _operation(model, f"Get the {what} of {name}", {})}
    return paths


def _operation(
    model: DescribedModel, summary: str, content: Json, body: Json | None = None
) -> Json:
    error = {"schema": {"$ref": "#/components/schemas/Error"}}
    found: Json = {
        "tags": [model.signature.name],
        "summary": summary,
        "responses": {
            "200": {"description": "OK", **({"content": content} if content else {})},
            "default": {
                "description": "`error` says why.",
                "content": {"application/json": error},
            },
        },
    }
    if body is not None:
        found["requestBody"] = {"required": True, "content": body}
    return found


# v2 --------------------------------------------------------------------------------


def _infer(model: DescribedModel) -> Json:
    signature = model.signature
    inputs = [_infer_input(spec, signature) for spec in signature.inputs.values()]
    needed = sum(not spec.optional for spec in signature.inputs.values())
    entries: Json = {"type": "array", "minItems": needed, "maxItems": len(inputs)}
    if inputs:
        entries["items"] = {"oneOf": inputs} if len(inputs) > 1 else inputs[0]
    schema: Json = {
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": {"type": "string"},
            "parameters": {"type": "object"},
            "inputs": entries,
            "outputs": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"enum": list(signature.outputs)}},
                },
            },
        },
    }
    content: Json = {"schema": schema}
    if (example := _example(signature)) is not None:
        parameters = {"parameters": _LAST_STEP} if model.is_sequence else {}
        content["example"] = {
            **parameters,
            "inputs": [
                {
                    "name": name,
                    "datatype": signature.inputs[name].dtype.name,
                    "shape": _example_shape(signature.inputs[name], signature),
                    "data": data,
                }
                for name, data in example.items()
            ],
        }
    bodies = {"application/json": content, **_form(model)}
    answer = {"application/json": {"schema": _infer_answer(signature)}}
    return _operation(model, f"Ask {signature.name}", answer, bodies)


def _infer_input(spec: InputSpec, signature: Signature) -> Json:
    dims = _dims(spec, signature)
    return {
        "title": spec.name,
        "type": "object",
        "required": ["name", "datatype", "shape", "data"],
        "properties": {
            "name": {"const": spec.name},
            "datatype": {"const": spec.dtype.name},
            "shape": _shape_schema(dims, signature, batched=len(dims) > len(spec.dims)),
            "data": {"type": "array", "items": _element(spec.dtype)},
        },
    }


def _shape_schema(dims: Sequence[int], signature: Signature, *, batched: bool) -> Json:
    each: list[Json] = [
        {"const": dim} if dim != -1 else {"type": "integer", "minimum": 0} for dim in dims
    ]
    if batched:
        each[0] = {"type": "integer", "minimum": 1, "maximum": signature.max_batch_size}
    return {"type": "array", "prefixItems": each, "minItems": len(dims), "maxItems": len(dims)}


def _infer_answer(signature: Signature) -> Json:
    outputs = [
        {
            "title": spec.name,
            "type": "object",
            "properties": {
                "name": {"const": spec.name},
                "datatype": {"const": spec.dtype.name},
                "shape": {"type": "array", "items": {"type": "integer"}},
                "data": {"type": "array", "items": _element(spec.dtype)},
            },
        }
        for spec in signature.outputs.values()
    ]
    return {
        "type": "object",
        "properties": {
            "model_name": {"const": signature.name},
            "model_version": {"type": "string"},
            "outputs": {"type": "array", "items": {"oneOf": outputs} if outputs else {}},
        },
    }


# Plain JSON ------------------------------------------------------------------------


def _generate(model: DescribedModel, summary: str, *, stream: bool = False) -> Json:
    signature = model.signature
    content: Json = {
        "schema": {
            "type": "object",
            "required": [name for name, spec in signature.inputs.items() if not spec.optional],
            "properties": {name: _values(spec) for name, spec in signature.inputs.items()},
        }
    }
    if (example := _example(signature)) is not None:
        parameters = {"parameters": _LAST_STEP} if model.is_sequence else {}
        plain = {name: data if len(data) != 1 else data[0] for name, data in example.items()}
        content["example"] = {**plain, **parameters}
    answer: Json = {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {name: _values(spec) for name, spec in signature.outputs.items()},
            }
        }
    }
    if stream:
        answer = {"text/event-stream": {"schema": {"type": "string"}}}
    return _operation(model, summary, answer, {"application/json": content, **_form(model)})


def _values(spec: InputSpec | OutputSpec) -> Json:
    """Return the JSON schema of a tensor in generate: one element, or a flat list of them."""
    one = _element(spec.dtype)
    return {"anyOf": [one, {"type": "array", "items": one}]}


# Forms -----------------------------------------------------------------------------


def _form(model: DescribedModel) -> Json:
    """Return the body of a form whose fields are the inputs; {} if none of them may be a file."""
    inputs = model.signature.inputs
    if not any(spec.dtype in _UPLOADS for spec in inputs.values()):
        return {}
    schema = {
        "type": "object",
        "required": [name for name, spec in inputs.items() if not spec.optional],
        "properties": {
            name: {"type": "string", **({"format": "binary"} if spec.dtype in _UPLOADS else {})}
            for name, spec in inputs.items()
        },
    }
    return {"multipart/form-data": {"schema": schema}}


# Examples --------------------------------------------------------------------------


def _element(dtype: DataType) -> Json:
    if dtype is dtypes.BYTES:
        return {"type": "string"}
    if dtype is dtypes.BOOL:
        return {"type": "boolean"}
    return {"type": "number" if "F" in dtype.name else "integer"}


def _example(signature: Signature) -> dict[str, list[Any]] | None:
    """Return name → flat list of example values for each required input.

    Return None if JSON cannot hold the values of one, or if there are more than MOST_EXAMPLE in all.
    """
    found: dict[str, list[Any]] = {}
    for spec in signature.inputs.values():
        if spec.optional:
            continue
        if spec.dtype in _BINARY_ONLY:
            return None
        count = math.prod(_example_shape(spec, signature))
        if count + sum(map(len, found.values())) > MOST_EXAMPLE:
            return None
        found[spec.name] = [_example_value(spec.dtype)] * count
    return found


def _example_value(dtype: DataType) -> Any:
    if dtype is dtypes.BYTES:
        return "text"
    if dtype is dtypes.BOOL:
        return False
    return 0.5 if "F" in dtype.name else 0


def _example_shape(spec: InputSpec, signature: Signature) -> list[int]:
    return [1 if dim == -1 else dim for dim in _dims(spec, signature)]
