"""Control operations that the protocol has no path for: /control/<name of the operation>."""

from __future__ import annotations

from core.control import Operation
from core.errors import not_found
from core.server import InferenceServer
from frontends.http.codec.json_text import read_control
from frontends.http.message import JSON_HEADERS, HttpRequest, HttpResponse
from frontends.http.route import Service
from frontends.shared import json_operations

PATH = "/control/"


def service(operation: Operation) -> Service:
    """Return the service that calls an operation with the arguments in the body or, with GET, in the query.

    The body is a JSON object or empty.
    """

    async def answer(server: InferenceServer, call: HttpRequest) -> HttpResponse:
        if call.method == "GET":
            arguments = json_operations.of_query(operation, call.query)
        else:
            arguments = read_control(call.body) if len(call.body) else {}
        result = await json_operations.call(server.control.areas, operation, arguments)
        return HttpResponse(200, JSON_HEADERS, result)

    return answer


async def unknown(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Raise CoreError(NOT_FOUND): no control operation has a path with the name below PATH."""
    name = call.path.removeprefix(PATH)
    raise not_found(
        f"unknown control operation '{name}': /openapi.json lists those with a path here"
    )
