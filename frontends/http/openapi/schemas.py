"""Schemas of what goes in and out of services (JSON Schema 2020-12, as OpenAPI 3.1 has it)."""

from __future__ import annotations

from typing import Any

from core import dtypes
from core.v2 import MOST_DIMENSIONS, MOST_ENTRIES

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_TRUTH: Schema = {"type": "boolean"}
_NATURAL: Schema = {"type": "integer", "minimum": 0}
_ANY_OBJECT: Schema = {"type": "object"}


def ref(name: str) -> Schema:
    """A schema of SCHEMAS."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: str = "", /, **properties: Schema) -> Schema:
    found: Schema = {"type": "object", "properties": properties}
    if required:
        found["required"] = required.split()
    return found


def _list(items: Schema, most: int | None = None) -> Schema:
    return {"type": "array", "items": items} | ({} if most is None else {"maxItems": most})


_PLACE = {
    "shared_memory_region": _TEXT | {"description": "Name of a region that is registered."},
    "shared_memory_offset": _NATURAL,
    "shared_memory_byte_size": _NATURAL,
}
_NAMED = {
    "name": _TEXT,
    "datatype": {"type": "string", "enum": sorted(dtypes.BY_NAME)},
    "shape": _list(_NATURAL, MOST_DIMENSIONS),
}
_DATA: Schema = {
    "type": "array",
    "description": "The elements in row-major order, flat or nested as the shape is; at most 100 deep.",
}
_TENSOR_SPEC = _object(
    "name datatype shape", name=_TEXT, datatype=_TEXT, shape=_list({"type": "integer"})
)
_REGION = _object(
    "name byte_size", name=_TEXT, key=_TEXT, offset=_NATURAL, byte_size=_NATURAL, device_id=_NATURAL
)
_LOG_SETTINGS: dict[str, Schema] = {
    "log_file": _TEXT | {"description": "Only the command line can say it."},
    "log_info": _TRUTH,
    "log_warning": _TRUTH,
    "log_error": _TRUTH,
    "log_verbose_level": _NATURAL,
    "log_format": {"type": "string", "enum": ["default", "ISO8601"]},
}
_TRACE_SETTINGS: dict[str, Schema] = {
    "trace_level": {"type": ["array", "string", "null"], "items": _TEXT},
    "trace_rate": {"type": ["string", "null"]},
    "trace_count": {"type": ["string", "null"]},
    "log_frequency": {"type": ["string", "null"]},
}

SCHEMAS: dict[str, Schema] = {
    "Error": _object("error", error=_TEXT),
    "Parameters": {
        "type": "object",
        "description": "Names that begin with triton_ are reserved.",
        "additionalProperties": {"type": ["boolean", "integer", "number", "string"]},
        "maxProperties": MOST_ENTRIES,
    },
    "InferInput": _object("name datatype shape", **_NAMED)
    | {
        "description": "One of `data`, `parameters.binary_data_size` and "
        "`parameters.shared_memory_region` says where the elements are.",
        "properties": _NAMED
        | {
            "data": _DATA,
            "parameters": _object(
                binary_data_size=_NATURAL
                | {
                    "description": "Bytes of this input behind the JSON (binary extension); inputs "
                    "follow each other in the order in which the JSON has them."
                },
                **_PLACE,
            ),
        },
    },
    "RequestedOutput": _object(
        "name",
        name=_TEXT,
        parameters=_object(
            binary_data=_TRUTH | {"description": "Whether the output comes behind the JSON."},
            classification=_NATURAL | {"description": "The best so many classes in its place."},
            **_PLACE,
        ),
    ),
    "InferRequest": _object(
        "inputs",
        id=_TEXT,
        parameters=_object(
            sequence_id={"type": ["integer", "string"]},
            sequence_start=_TRUTH,
            sequence_end=_TRUTH,
            priority=_NATURAL,
            timeout=_NATURAL | {"description": "Microseconds in the queue."},
            binary_data_output=_TRUTH | {"description": "Outputs come behind the JSON."},
        )
        | {"additionalProperties": {"type": ["boolean", "integer", "number", "string"]}},
        inputs=_list(ref("InferInput"), MOST_ENTRIES) | {"minItems": 1},
        outputs=_list(ref("RequestedOutput"), MOST_ENTRIES),
    ),
    "InferOutput": _object("name datatype shape", **_NAMED)
    | {
        "properties": _NAMED
        | {"data": _DATA, "parameters": _object(binary_data_size=_NATURAL, **_PLACE)}
    },
    "InferResponse": _object(
        "model_name model_version outputs",
        model_name=_TEXT,
        model_version=_TEXT,
        id=_TEXT,
        parameters=ref("Parameters"),
        outputs=_list(ref("InferOutput")),
    ),
    "GenerateRequest": {
        "type": "object",
        "description": "Inputs of the model by their names, each an element or a list of them; what "
        "is no input becomes a parameter. `id` and `parameters` are those of InferRequest.",
        "properties": {"id": _TEXT, "parameters": _ANY_OBJECT},
    },
    "GenerateResponse": _object("model_name model_version", model_name=_TEXT, model_version=_TEXT)
    | {"description": "Outputs of the model by their names."},
    "ServerMetadata": _object(
        "name version extensions", name=_TEXT, version=_TEXT, extensions=_list(_TEXT)
    ),
    "ModelMetadata": _object(
        "name versions platform inputs outputs",
        name=_TEXT,
        versions=_list(_TEXT),
        platform=_TEXT,
        inputs=_list(_TENSOR_SPEC),
        outputs=_list(_TENSOR_SPEC),
    ),
    "ModelConfig": {"type": "object", "description": "The completed config.pbtxt as JSON."},
    "Statistics": _object("model_stats", model_stats=_list(_ANY_OBJECT)),
    "IndexRequest": _object(ready=_TRUTH),
    "Index": _list(_object("name", name=_TEXT, version=_TEXT, state=_TEXT, reason=_TEXT)),
    "LoadRequest": _object(
        parameters={
            "type": "object",
            "properties": {"config": _TEXT | {"description": "A ModelConfig as JSON."}},
            "patternProperties": {
                "^file:": _TEXT | {"description": "A file of the model, in base64."}
            },
            "additionalProperties": False,
        }
    ),
    "UnloadRequest": _object(parameters=_object(unload_dependents=_TRUTH)),
    "Regions": _list(_REGION),
    "RegisterRequest": _object(
        "byte_size",
        key=_TEXT | {"description": "Name of a POSIX shared memory object (system)."},
        offset=_NATURAL,
        byte_size=_NATURAL,
        raw_handle=_object("b64", b64=_TEXT) | {"description": "A handle of CUDA IPC (cuda)."},
        device_id=_NATURAL,
    ),
    "Description": {"type": "object", "description": "An OpenAPI 3.1 document."},
    "LogSettings": _object(**_LOG_SETTINGS),
    "TraceSettings": _object(**_TRACE_SETTINGS),
}
