"""What each service takes and gives, one row for a service and a method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from frontends.http.codec.limits import JSON_SIZE
from frontends.http.services import health, metadata, repository, shared_memory
from frontends.http.services.generate import generate, generate_stream
from frontends.http.services.infer import infer
from frontends.http.services.log import log_settings
from frontends.http.services.trace import trace_settings

_BINARY = (
    "JSON of InferRequest or InferResponse, of as many bytes as the header "
    f"{JSON_SIZE} says, and behind it the tensors that have a `binary_data_size`, without anything "
    "between them. Elements are little-endian; one of BYTES has its length before it, in four bytes. "
    "With a length of 0 the whole body is the one input of the model."
)


@dataclass(frozen=True)
class Operation:
    """One method of one service.

    summary    a sentence
    takes      name of the schema of the body, "" for none
    gives      the same of the answer; "" for no body
    binary     whether bodies may be binary instead (binary extension)
    events     whether the answer is a stream of events, each with what `gives` says
    statuses   those of refusals, beside what every route can answer
    """

    summary: str
    takes: str = ""
    gives: str = ""
    binary: bool = False
    events: bool = False
    statuses: tuple[int, ...] = ()


_MODEL = (404, 503)
_INFERENCE = (404, 500, 501, 503, 504)

# Other services have no place in the router: a test walks through it.
OPERATIONS: dict[Callable[..., Any], dict[str, Operation]] = {
    infer: {
        "POST": Operation(
            "Infer: one request, one response.",
            "InferRequest",
            "InferResponse",
            binary=True,
            statuses=_INFERENCE,
        )
    },
    generate: {
        "POST": Operation(
            "Infer with plain JSON.", "GenerateRequest", "GenerateResponse", statuses=_INFERENCE
        )
    },
    generate_stream: {
        "POST": Operation(
            "Infer with plain JSON; an event for each response. GET with an upgrade to WebSocket is a "
            "conversation of such requests.",
            "GenerateRequest",
            "GenerateResponse",
            events=True,
            statuses=_INFERENCE,
        )
    },
    health.live: {"GET": Operation("Whether the server can answer.")},
    health.ready: {"GET": Operation("Whether the server can serve.", statuses=(503,))},
    health.model_ready: {"GET": Operation("Whether a model can serve.")},
    metadata.server_metadata: {"GET": Operation("The server.", gives="ServerMetadata")},
    metadata.model_metadata: {
        "GET": Operation("Inputs and outputs of a model.", gives="ModelMetadata", statuses=_MODEL)
    },
    metadata.model_config: {
        "GET": Operation("Configuration of a model.", gives="ModelConfig", statuses=_MODEL)
    },
    metadata.all_statistics: {"GET": Operation("Statistics of all models.", gives="Statistics")},
    metadata.model_statistics: {
        "GET": Operation("Statistics of a model.", gives="Statistics", statuses=_MODEL)
    },
    repository.index: {
        "POST": Operation("Models of the repositories.", "IndexRequest", "Index", statuses=(501,))
    },
    repository.load: {
        "POST": Operation("Load or reload a model.", "LoadRequest", statuses=(404, 500, 501, 503))
    },
    repository.unload: {
        "POST": Operation("Unload a model.", "UnloadRequest", statuses=(404, 500, 501, 503))
    },
    trace_settings: {
        "GET": Operation("Settings of traces.", gives="TraceSettings"),
        "POST": Operation(
            "Change settings of traces.", "TraceSettings", "TraceSettings", statuses=(501,)
        ),
    },
    log_settings: {
        "GET": Operation("Settings of the log.", gives="LogSettings"),
        "POST": Operation(
            "Change settings of the log.", "LogSettings", "LogSettings", statuses=(501, 503)
        ),
    },
    shared_memory.status: {
        "GET": Operation("Regions of shared memory.", gives="Regions", statuses=(404, 501))
    },
    shared_memory.register: {
        "POST": Operation("Register a region.", "RegisterRequest", statuses=(404, 500, 501, 503))
    },
    shared_memory.unregister: {
        "POST": Operation("Forget one region, or all.", statuses=(404, 501))
    },
}

# The service that gives the description stands in the router, which is what is described.
ITSELF = {"GET": Operation("This description.", gives="Description")}


def binary_text() -> str:
    """What a body of the binary extension is."""
    return _BINARY
