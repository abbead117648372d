"""Inference: one request, one response."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NoReturn

from core.config import Signature
from core.errors import unsupported
from core.request import InferenceRequest
from core.response import Reply
from core.server import InferenceServer
from core.tensor import Buffer
from frontends.http.background import LARGE_BYTES, begin, turn
from frontends.http.codec import compression, form
from frontends.http.codec.limits import JSON_SIZE, natural_number
from frontends.http.codec.parse import OutputForm, parse
from frontends.http.codec.render import render, render_at_once
from frontends.http.errors import refusal
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.native.connection_memory import made_bytes
from frontends.http.options import HttpOptions
from frontends.http.services.traced import submit, traced
from frontends.shared.memory import MemoryControl
from frontends.shared.v2 import forward_header

_UNPACKED = "the unpacked body of a request"


async def infer(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Pass the request to its model and return the response.

    Headers that --http-header-forward-pattern matches become parameters. The response has status 501 if the
    body has an unknown Content-Encoding. The request is cancelled if this
    coroutine is cancelled because the client has disconnected. Raises CoreError, also for a decoupled model.
    """
    model, version = call.model, call.version
    signature = server.models.signature(model, version)
    if signature.decoupled:
        refuse_decoupled()
    encoding = call.headers.get("Content-Encoding")
    if not compression.known(encoding):
        refused = refusal(501, "Unsupported compression type")
        return HttpResponse(
            501, {**refused.headers, "Accept-Encoding": compression.OFFERED}, refused.body
        )
    request, wanted = await _read(server, call, signature, encoding)
    call.asked = request
    made = made_bytes(request, JSON_SIZE in call.headers)
    call.share.take_large(made, "the tensors of the request")
    if pattern := HttpOptions.of(server.options).http_header_forward_pattern:
        forwarded = _compiled(pattern)
        for name, value in call.headers.items():
            if forwarded(name):
                forward_header(request, name, value)
    reply = submit(server, call, request)
    return await traced(reply, _answered(reply, wanted, call))


async def _read(
    server: InferenceServer, call: HttpRequest, signature: Signature, encoding: str | None
) -> tuple[InferenceRequest, OutputForm]:
    """Unpack and read a body; return the request in it, and in which form its outputs are wanted.

    encoding   the header Content-Encoding, None if absent
    What takes long runs on another thread, for a few requests at a time.
    """
    body, most_bytes = call.body, HttpOptions.of(server.options).http_max_input_size
    regions = MemoryControl.of(server).regions

    def read() -> tuple[InferenceRequest, OutputForm]:
        path = (call.model, call.version, signature)
        if form.is_form(call.headers):
            return form.read(*path, call.headers, body, most_bytes), OutputForm()
        return parse(*path, call.headers, body, most_bytes, regions)

    unpacking = None
    if encoding is not None and encoding != compression.IDENTITY:
        unpacking = compression.Unpacking(body, encoding, most_bytes)
        if unpacking.at_once():
            body, unpacking = unpacking.plain, None
    if unpacking is None and not _takes_long(call.headers, body):
        return read()
    async with turn():
        if unpacking is not None:
            body = await unpacking.rest(lambda size: call.share.take_unpaid(size, _UNPACKED))
            call.share.take(len(body), _UNPACKED)
            if not _takes_long(call.headers, body):
                return read()
        return await begin(read)


def _takes_long(headers: Mapping[str, str], body: Buffer) -> bool:
    """Return whether the JSON in a body, once unpacked, is so large that reading takes milliseconds."""
    if len(body) < LARGE_BYTES:
        return False
    size = headers.get(JSON_SIZE)
    return size is None or not 0 <= natural_number(size) < LARGE_BYTES


def refuse_decoupled() -> NoReturn:
    """Raise CoreError(UNSUPPORTED): one request has one response here."""
    raise unsupported("HTTP end point doesn't support models with decoupled transaction policy")


async def _answered(reply: Reply, wanted: OutputForm, call: HttpRequest) -> HttpResponse:
    response = await reply
    answer = render_at_once(response, wanted)
    if answer is None:
        answer = await begin(render, response, wanted)
    encoding = compression.accepted(call.headers.get("Accept-Encoding"))
    if encoding == compression.IDENTITY:
        return answer
    if len(answer.body) <= compression.AT_ONCE_BYTES:
        packed = compression.compress(answer.body, encoding)
    else:
        packed = await begin(compression.compress, answer.body, encoding)
    return HttpResponse(answer.status, {**answer.headers, "Content-Encoding": encoding}, packed)


@lru_cache
def _compiled(pattern: str) -> Callable[[str], Any]:
    """Return a function (text) → match of the pattern anywhere in the text, or None. Case is ignored."""
    return re.compile(pattern, re.IGNORECASE).search
