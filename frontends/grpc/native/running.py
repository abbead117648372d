"""Runs methods that need a task: one coroutine for each call, between the connection and the method."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING

from core.errors import CoreError
from frontends.grpc.call import GrpcCall
from frontends.grpc.compression import Unreadable, pack, unpack, unpaid_bytes
from frontends.grpc.method import Message, StreamMethod, UnaryMethod
from frontends.grpc.observing import observe
from frontends.grpc.status import Code, code_of, details, unforeseen

if TYPE_CHECKING:
    from frontends.grpc.native.handle import Handle


async def run_unary(
    method: UnaryMethod, request: bytes, compressed: bool, call: GrpcCall, handle: Handle
) -> None:
    """Pass the request of a unary call to its method, and answer `handle` with the response or error.

    compressed   whether `request` must be decompressed first
    A method with `begin` answers the handle itself, perhaps later. If this task is cancelled, for example
    because the client disconnects, the call is cancelled too. Errors of the method are not raised here.
    """
    try:
        if compressed:
            request = await unpack(
                request, handle.request_encoding, handle.port.most_request_bytes, handle
            )
        if method.received is not None:
            method.received(call, request)
        if (begin := handle.port.observers.begin) is not None:
            observe(begin, method, call, request)
        if method.begin is not None:
            method.begin(request, call, handle)
        else:
            handle(await method.function(request, call))
    except Unreadable as error:
        handle.finish(error.code, str(error))
    except CoreError as error:
        handle(error)
    except asyncio.CancelledError:
        call.cancel()
        raise
    except Exception as error:
        handle(unforeseen(method.path, error))


async def pack_answer(handle: Handle, message: Message) -> None:
    """Compress the response of a unary call and send it; send it uncompressed if it gets no smaller."""
    handle.answer(*await pack(message, handle.response_encoding, handle.port.compression_level))


class StreamRun:
    """A streaming call: runs its method in a task, and queues the messages of the client. Loop thread only.

    The method iterates over this object to take the messages, decompressed. The connection stops reading a
    client that is too far ahead of the method. The end of the method, or its error, ends the call.
    """

    def __init__(
        self, handle: Handle, call: GrpcCall, method: StreamMethod, loop: asyncio.AbstractEventLoop
    ):
        self._handle = handle
        self._call = call
        self._method = method
        self._loop = loop
        self._messages: deque[tuple[bytes, bool]] = deque()
        self._ended = False
        self._reader: asyncio.Future[None] | None = None  # waits for a message
        self._writer: asyncio.Future[None] | None = None  # waits for room
        self._task = loop.create_task(self._run())

    # What the connection calls -----------------------------------------------

    def put(self, message: bytes, compressed: bool) -> None:
        self._messages.append((message, compressed))
        _wake(self._reader)

    def put_end(self) -> None:
        self._ended = True
        _wake(self._reader)

    def put_room(self) -> None:
        _wake(self._writer)

    def cancel(self) -> None:
        self._task.cancel()

    # What the method sees ------------------------------------------------------

    def __aiter__(self) -> StreamRun:
        return self

    async def __anext__(self) -> bytes:
        while not self._messages:
            if self._ended:
                raise StopAsyncIteration
            self._reader = self._loop.create_future()
            await self._reader
        message, compressed = self._messages.popleft()
        self._handle.taken(len(message))
        if compressed:
            message = await self._unpacked(message)
        if self._method.received is not None:
            self._method.received(self._call, message)
        if self._call.observation is not None:
            self._call.observation.receive(message)
        return message

    async def _unpacked(self, message: bytes) -> bytes:
        handle = self._handle
        try:
            found = await unpack(
                message, handle.request_encoding, handle.port.most_request_bytes, handle
            )
        except Unreadable as error:
            handle.finish(error.code, str(error))
            self._task.cancel()
            raise StopAsyncIteration from None
        # The method counts the messages that it keeps.
        handle.release(len(found))
        handle.release_unpaid(unpaid_bytes(message, found))
        return found

    async def _run(self) -> None:
        handle, method = self._handle, self._method
        if (begin := handle.port.observers.begin) is not None:
            observe(begin, method, self._call)
        try:
            async with contextlib.aclosing(method.function(self, self._call)) as responses:
                async for response in responses:
                    await self._send(response)
        except CoreError as error:
            handle.finish(code_of(error), details(error.message))
        except asyncio.CancelledError:
            self._call.cancel()
            raise
        except Exception as error:
            refusal = unforeseen(method.path, error)
            handle.finish(Code.INTERNAL, refusal.message)
        else:
            handle.finish(Code.OK, "")

    async def _send(self, message: Message) -> None:
        handle = self._handle
        compressed = False
        if self._call.active is not None or self._call.observation is not None:
            self._call.sent(message)
        if encoding := handle.response_encoding:
            message, compressed = await pack(message, encoding, handle.port.compression_level)
        if handle.send(message, compressed) is False:
            self._writer = self._loop.create_future()
            await self._writer


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
