"""Sends responses through aiohttp.

HttpResponse ─► [sending] ─► aiohttp.  Small ones are sent whole by aiohttp, large ones in pieces, so that
the transport holds no second copy of them.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from core.errors import MemoryExhausted
from core.system.account import UNCOUNTED
from core.telemetry.tracing import Trace
from frontends.http.aiohttp_web import HttpVersion11, web
from frontends.http.errors import error_answer, refusal
from frontends.http.message import HttpResponse, Parts
from frontends.http.native.event_stream import PartWriter
from frontends.http.request_share import RequestShare
from frontends.shared.load_reports import FORMAT

_PIECE = 1024 * 1024  # bytes of a large response that the transport gets at a time


async def send(
    answer: HttpResponse, request: web.BaseRequest, share: RequestShare
) -> web.StreamResponse:
    """Send a response and return it as aiohttp's object; aiohttp sends a small one after the handler.

    share   memory that the request holds; counts a large response until it has been sent
    If the memory is exhausted before a response begins, an error with status 503 replaces it.
    """
    if answer.trace is not None:
        return await _send_traced(answer, answer.trace, request, share)
    if answer.more is not None:
        return await _send_parts(answer, answer.more, request, share)
    if len(answer.body) <= UNCOUNTED and not (share.held or share.unpaid):
        return response_of(answer, request)
    return await _send_whole(answer, request, share)


def response_of(answer: HttpResponse, request: web.BaseRequest) -> web.Response:
    response = web.Response(
        status=answer.status, headers=_fields(answer, request), body=answer.body
    )
    if _ends(request):
        response.force_close()
    return response


def without_version(request: web.BaseRequest) -> web.StreamResponse:
    """Return the refusal of a request line without a version, in HTTP/1.1: aiohttp's would be HTTP/0.9."""
    request._version = HttpVersion11
    response = response_of(refusal(400, "the request line has no version of HTTP"), request)
    response.force_close()
    return response


def _fields(answer: HttpResponse, request: web.BaseRequest) -> dict[str, str]:
    """Return the header fields of a response, with `Server`.

    If the port has CORS, with its fields. With a load report, if the client asks for it, the format is known,
    and the request has reached a model.
    """
    fields = {**answer.headers, "Server": "core"}
    connection: Any = request.protocol
    if connection.cors is not None:
        fields.update(connection.cors.fields(request.headers.get("Origin")))
    if FORMAT in request.headers:
        call = connection.call
        if call is not None and call.asked is not None:  # a permitted request for a model
            fields.update(connection.load_reports.fields(request.headers[FORMAT]))
    return fields


def _ends(request: web.BaseRequest) -> bool:
    """Return whether the connection closes after the response.

    It closes if the server stops. It closes if the body of the request was not read to its end: the client
    may never send the rest, and the next request would be taken for it. It closes after an upgrade request
    with a body if `drops_followers` is set, because aiohttp drops all data after such a request.
    """
    connection: Any = request.protocol
    if connection.finishing or not request.content.is_eof():
        return True
    return connection.drops_followers and request._message.upgrade and bool(request.content_length)


def _begun(answer: HttpResponse, request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=_fields(answer, request))
    if _ends(request):
        response.force_close()
    return response


async def _send_traced(
    answer: HttpResponse, trace: Trace, request: web.BaseRequest, share: RequestShare
) -> web.StreamResponse:
    """Send a response here, not in aiohttp after the handler, so that the trace gets the times of its first
    and last byte."""
    trace.stamp("HTTP_SEND_START")
    try:
        if answer.more is not None:
            response = await _send_parts(answer, answer.more, request, share)
        else:
            response = await _send_whole(answer, request, share)
        trace.stamp("HTTP_SEND_END")
    finally:
        trace.release()
    return response


async def _send_whole(
    answer: HttpResponse, request: web.BaseRequest, share: RequestShare
) -> web.StreamResponse:
    """Send a response with a complete body. Wait until the client has taken all but a small rest of it.

    If there is no memory for a large one, an error with status 503 is sent instead.
    """
    try:
        share.take_large(len(answer.body), "the answer")
    except MemoryExhausted as error:
        answer = error_answer(error)
    if len(answer.body) <= UNCOUNTED:
        response: web.StreamResponse = response_of(answer, request)
        await response.prepare(request)
        await response.write_eof()
    else:
        response = _begun(answer, request)
        response.content_length = len(answer.body)
        await response.prepare(request)
        await _write(response, answer.body, request)
        await response.write_eof()
    await _taken(request)
    return response


async def _write(response: web.StreamResponse, body: bytes, request: web.BaseRequest) -> None:
    """Write a part of a response; a large one in pieces, each when the client has taken the piece before.

    Pieces are necessary because aiohttp copies its input on the event loop.
    """
    if len(body) <= UNCOUNTED:
        await response.write(body)
        return
    view = memoryview(body)
    for at in range(0, len(view), _PIECE):
        await response.write(view[at : at + _PIECE])
        await _taken(request)


async def _taken(request: web.BaseRequest) -> None:
    """Wait until the client has taken the written bytes, except for a rest too small to be counted."""
    await asyncio.sleep(0)  # the loop writes to the kernel only at the end of its turn
    await request.writer.drain()


async def _send_parts(
    answer: HttpResponse, more: Parts, request: web.BaseRequest, share: RequestShare
) -> web.StreamResponse:
    """Send a response whose body comes in parts: each when it is ready, and the one before is taken.

    The iterator of the parts is closed in any case, also when the client disconnects. Without memory for the
    first part, an error with status 503 is sent instead; for a later one, MemoryExhausted is raised.
    """
    async with aclosing(more):
        try:
            share.take_large(len(answer.body), "a part of the answer")
        except MemoryExhausted as error:
            return await _send_whole(error_answer(error), request, share)
        response = _begun(answer, request)
        await response.prepare(request)
        await _write(response, answer.body, request)
        direct = _attached(more, request)
        try:
            async for part in more:
                direct.busy = True
                direct.flush()
                # The engine waits for the client only now and then.
                await request.writer.drain()
                held = share.held
                share.take_large(len(part), "a part of the answer")
                await _write(response, part, request)
                share.give(share.held - held)
                direct.busy = False
            direct.flush()
        finally:
            direct.close()
        await response.write_eof()
    return response


def _attached(more: Parts, request: web.BaseRequest) -> PartWriter:
    """Return a writer for the response whose head was sent; parts that can be pushed use it from now on."""
    transport: Any = request.transport
    writer: Any = request.writer
    direct = PartWriter(transport, request.protocol, writer, writer.chunked)
    # Not isinstance: Python 3.11 compares all names of a protocol for each object, which takes 20 us.
    if (attach := getattr(more, "attach", None)) is not None:
        attach(direct)
    return direct
