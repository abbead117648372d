"""Inference: one request, one response."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

from core.deadline import ask_in_time
from core.errors import CoreError, unsupported
from core.response import Reply
from core.server import Server
from core.telemetry.tracing import Trace
from frontends.http.codec import compression
from frontends.http.codec.limits import JSON_SIZE
from frontends.http.codec.parameters import add_headers
from frontends.http.codec.parse import OutputForm, parse
from frontends.http.codec.render import render
from frontends.http.errors import error_answer, refusal
from frontends.http.message import Answer, Call
from frontends.http.native.tally import made_bytes
from frontends.http.services.traced import bring_context, received


async def infer(server: Server, call: Call) -> Answer:
    """Hand the request to its model and wait for the answer.

    When the waiting is cancelled, because the client has gone, the request is cancelled too.
    """
    model, version = call.model, call.version
    signature = server.signature(model, version)
    if signature.decoupled:
        refuse_decoupled()
    encoding = call.headers.get("Content-Encoding")
    if not compression.known(encoding):
        refused = refusal(501, "Unsupported compression type")
        return Answer(
            501, {**refused.headers, "Accept-Encoding": compression.OFFERED}, refused.body
        )
    most_bytes = server.options.http_max_input_size
    unpack = compression.decompressor(encoding, len(call.body), most_bytes)
    body = call.body if unpack is None else await _run(unpack, call.body)
    request, form = parse(
        model, version, signature, call.headers, body, most_bytes, server.shared_memory
    )
    call.asked = request
    made = made_bytes(request, JSON_SIZE in call.headers)
    call.share.take_large(made, "the tensors of the request")
    if pattern := server.options.http_header_forward_pattern:
        forwarded = _compiled(pattern)
        add_headers((item for item in call.headers.items() if forwarded(item[0])), request)
    request.deadline_ns = call.deadline_ns
    bring_context(server, call, request)
    try:
        reply = ask_in_time(server.infer, request)
    except CoreError:
        received(request, call)
        raise
    trace = received(request, call)
    if trace is not None:
        return await _traced(trace, reply, form, call)
    return await _answered(reply, form, call)


def refuse_decoupled() -> NoReturn:
    """Raises CoreError(UNSUPPORTED): one request has one answer here."""
    raise unsupported("HTTP end point doesn't support models with decoupled transaction policy")


async def _answered(reply: Reply, form: OutputForm, call: Call) -> Answer:
    answer = render(await reply, form)
    wanted = compression.accepted(call.headers.get("Accept-Encoding"))
    if wanted == compression.IDENTITY:
        return answer
    packed = await _run(lambda data: compression.compress(data, wanted), answer.body)
    return Answer(answer.status, {**answer.headers, "Content-Encoding": wanted}, packed)


async def _traced(trace: Trace, reply: Reply, form: OutputForm, call: Call) -> Answer:
    trace.hold()
    try:
        answer = await _answered(reply, form, call)
    except CoreError as error:
        answer = error_answer(error)
    except BaseException:
        trace.release()
        raise
    answer.trace = trace
    return answer


async def _run(work: Callable[[Any], Any], data: Any) -> Any:
    """work(data), on another thread where it takes long."""
    if len(data) < compression.WORTH_A_THREAD:
        return work(data)
    return await asyncio.get_running_loop().run_in_executor(None, work, data)


@lru_cache
def _compiled(pattern: str) -> Callable[[str], Any]:
    """Whether a header's name has a match of the pattern in it, in any case."""
    return re.compile(pattern, re.IGNORECASE).search
