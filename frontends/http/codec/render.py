"""InferenceResponse → bytes.

split ─► [render].  JSON first, then the binary outputs in the order of the response; the bytes of a
tensor are copied once, into the body.
"""

from __future__ import annotations

from core.response import InferenceResponse
from frontends.http.codec.limits import JSON_SIZE
from frontends.http.message import JSON_HEADERS, Answer
from frontends.http.native.infer_request import OutputForm
from frontends.http.native.infer_response import write as write


def render(response: InferenceResponse, form: OutputForm) -> Answer:
    """The answer 200 with the outputs, each in the form that the request wants; raises as `write`."""
    json_size, parts = write(response, form)
    body = parts[0] if len(parts) == 1 else b"".join(parts)
    if not json_size:
        return Answer(200, JSON_HEADERS, body)
    headers = {"Content-Type": "application/octet-stream", JSON_SIZE: str(json_size)}
    return Answer(200, headers, body)
