"""Control operations that the protocol has no method for: /core.control.<area>/<method>.

Each has a method of its own, so its category and role are known before a message is read. Request and
response are google.protobuf.StringValue with JSON: the arguments by name, and {"result": …}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from google.protobuf.wrappers_pb2 import StringValue

from core.control import Area, Operation
from core.errors import invalid
from frontends.grpc.call import GrpcCall
from frontends.grpc.method import UnaryFunction
from frontends.grpc.protocol.decode import decode
from frontends.grpc.services.repository import to_the_end
from frontends.shared import json_operations

_MOST_BYTES = 1024 * 1024  # of a request; each byte may become an object of fifty


def path_of(operation: Operation) -> str:
    """Return the path of an operation: /core.control.repository/poll for "repository.poll"."""
    area = operation.name.removesuffix(f".{operation.method}")
    return f"/core.control.{area}/{operation.method}"


def service(areas: Mapping[str, Area], operation: Operation) -> UnaryFunction:
    """Return the function of a method that calls one control operation of `areas`. Loop thread only.

    The operation goes on if the client disconnects.
    """

    async def answer(data: bytes, call: GrpcCall) -> bytes:
        work = json_operations.call(areas, operation, _arguments(operation, data))
        # A client that goes away does not stop the operation.
        return StringValue(value=(await to_the_end(work)).decode()).SerializeToString()

    return answer


def _arguments(operation: Operation, data: bytes) -> Any:
    if len(data) > _MOST_BYTES:
        raise invalid(
            f"the request of {len(data)} bytes for control operation '{operation.name}' is larger than "
            f"{_MOST_BYTES} bytes"
        )
    text = decode(StringValue, data).value
    try:
        return orjson.loads(text) if text else {}
    except orjson.JSONDecodeError as error:
        raise invalid(
            f"the request for control operation '{operation.name}' is not JSON: {error}"
        ) from None
