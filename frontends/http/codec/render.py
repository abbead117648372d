"""InferenceResponse → bytes.

split ─► [render].  JSON first, then the binary outputs in the order of the response; the bytes of a
tensor are copied once, into the body.
"""

from __future__ import annotations

from core.native.gather import joined
from core.response import InferenceResponse
from core.tensor import Buffer
from frontends.http.background import TakesLong
from frontends.http.codec.limits import JSON_SIZE
from frontends.http.message import JSON_HEADERS, HttpResponse
from frontends.http.native.infer_request import OutputForm
from frontends.http.native.infer_response import write as write
from frontends.http.native.infer_response import write_at_once

MOST_JOINED = 2 * 1024 * 1024  # bytes of a response in parts that are joined on the event loop


def render(response: InferenceResponse, form: OutputForm) -> HttpResponse:
    """Return a response with status 200 and the outputs, each in the form that the request asks for.

    Thread-safe. Raises what `write` raises.
    """
    return _answer(*write(response, form))


def render_at_once(response: InferenceResponse, form: OutputForm) -> HttpResponse | None:
    """Return the response of `render`, or None if it is so large that this takes some milliseconds.

    Raises what `render` raises.
    """
    try:
        json_size, parts = write_at_once(response, form)
    except TakesLong:
        return None
    if len(parts) > 1 and sum(memoryview(part).nbytes for part in parts) > MOST_JOINED:
        return None
    return _answer(json_size, parts)


def _answer(json_size: int, parts: list[Buffer]) -> HttpResponse:
    body = parts[0] if len(parts) == 1 else joined(parts)
    if not json_size:
        return HttpResponse(200, JSON_HEADERS, body)
    headers = {"Content-Type": "application/octet-stream", JSON_SIZE: str(json_size)}
    return HttpResponse(200, headers, body)
