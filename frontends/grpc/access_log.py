"""Methods whose calls are written into the access log (--access-log).

engine ─► [recorded] ─► method.  One line for a call, and for a stream of inference one for each of its
requests (services/stream.py) beside its own. Without the option no method is wrapped.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from dataclasses import replace

from core.errors import CoreError, Kind, cancelled
from core.tensor import Buffer
from frontends.grpc.call import Call
from frontends.grpc.method import (
    BeginFunction,
    Done,
    EnterFunction,
    Message,
    Method,
    StreamFunction,
    Unary,
    UnaryFunction,
)
from frontends.grpc.status import Code, code_of
from frontends.shared.access import ActiveCall
from frontends.shared.access_log import AccessLog, Entry

# Of each method the numbers of the fields with model, version and id; 0 for none (grpc_service.proto).
_FIELDS = {
    "ModelInfer": (1, 2, 3),
    "ModelStreamInfer": (1, 2, 3),
    "ModelReady": (1, 2, 0),
    "ModelMetadata": (1, 2, 0),
    "ModelConfig": (1, 2, 0),
    "ModelStatistics": (1, 2, 0),
    "RepositoryModelLoad": (2, 0, 0),
    "RepositoryModelUnload": (2, 0, 0),
    "TraceSetting": (2, 0, 0),
}
_FAMILY = re.compile("^(?:ipv[46]:|unix:.*)")  # before an address, as gRPC writes it


def recorded(method: Method, access: AccessLog) -> Method:
    """`method`, each call of which has a line."""
    if method.enter is not None:
        method = replace(method, enter=_enter(method.enter, method.path, access))
    if isinstance(method, Unary):
        begin = None if method.begin is None else _begin(method.begin, method.path, access)
        return replace(method, function=_unary(method.function, method.path, access), begin=begin)
    return replace(method, function=_stream(method.function, method.path, access))


def entry_of(call: Call, path: str) -> Entry:
    """What is known of a call before its message is read."""
    entry = Entry("grpc", _FAMILY.sub("", call.peer), path)
    if isinstance(parent := call.value("traceparent"), str):
        entry.belong(parent)
    return entry


def code_of_end(call: Call, error: CoreError) -> int:
    """The code of the status of a call that has ended: what the client has seen if its deadline has come."""
    if error.kind is Kind.CANCELLED and call.expired:
        return Code.DEADLINE_EXCEEDED
    return code_of(error)


def size_of(message: Message) -> int:
    """Bytes of a message, whole or in parts."""
    if isinstance(message, bytes):
        return len(message)
    return sum(memoryview(part).nbytes for part in message)


class _Told:
    """The `done` of a call: writes its line, and passes the outcome on."""

    def __init__(self, access: AccessLog, entry: Entry, call: Call, done: Done):
        self._access = access
        self._call = call
        self._entry = entry
        self._done = done

    def __call__(self, outcome: Message | CoreError) -> None:
        self._entry.come_from(self._call.caller)
        if isinstance(outcome, CoreError):
            self._entry.come_from(outcome.caller)
            self._access.write(self._entry, code_of_end(self._call, outcome), 0)
        else:
            self._access.write(self._entry, 0, size_of(outcome))
        self._done(outcome)


def _enter(enter: EnterFunction, path: str, access: AccessLog) -> EnterFunction:
    """`enter`; a call that it refuses has a line, which knows nothing of its message."""

    def entered(call: Call) -> ActiveCall:
        try:
            return enter(call)
        except CoreError as error:
            entry = entry_of(call, path)
            entry.come_from(call.caller)
            access.write(entry, code_of(error), 0)
            raise

    return entered


def _begin(begin: BeginFunction, path: str, access: AccessLog) -> BeginFunction:
    def begun(request: bytes, call: Call, done: Done) -> None:
        entry = entry_for(call, path, request)
        begin(request, call, _Told(access, entry, call, done))

    return begun


def _unary(function: UnaryFunction, path: str, access: AccessLog) -> UnaryFunction:
    async def answered(request: bytes, call: Call) -> bytes:
        entry = entry_for(call, path, request)
        try:
            response = await _noted(function(request, call), call, entry)
        except CoreError as error:
            entry.come_from(error.caller)
            access.write(entry, code_of_end(call, error), 0)
            raise
        except asyncio.CancelledError:
            access.write(entry, code_of_end(call, cancelled()), 0)
            raise
        except Exception:
            access.write(entry, Code.INTERNAL, 0)
            raise
        access.write(entry, 0, len(response))
        return response

    return answered


async def _noted(answering: Awaitable[bytes], call: Call, entry: Entry) -> bytes:
    """The answer; the line says who has called, whatever comes of it."""
    try:
        return await answering
    finally:
        entry.come_from(call.caller)


def _stream(function: StreamFunction, path: str, access: AccessLog) -> StreamFunction:
    async def streamed(requests: AsyncIterator[bytes], call: Call) -> AsyncGenerator[bytes, None]:
        entry = entry_of(call, path)
        sent, status = 0, int(Code.CANCELLED)  # if it is closed before its end

        async def counted() -> AsyncIterator[bytes]:
            async for request in requests:
                entry.bytes_in += len(request)
                yield request

        responses = function(counted(), call)
        try:
            async for response in responses:
                sent += size_of(response)
                yield response
            status = Code.OK
        except CoreError as error:
            status = code_of_end(call, error)
            entry.come_from(error.caller)
            raise
        except (asyncio.CancelledError, GeneratorExit):
            status = code_of_end(call, cancelled())
            raise
        except Exception:
            status = Code.INTERNAL
            raise
        finally:
            entry.come_from(call.caller)
            access.write(entry, status, sent)
            await responses.aclose()

    return streamed


def entry_for(call: Call, path: str, request: bytes) -> Entry:
    """What is known of one message of a call; its caller, if a stream has identified it already."""
    entry = entry_of(call, path)
    entry.come_from(call.caller)
    entry.bytes_in = len(request)
    if (fields := _FIELDS.get(path.rpartition("/")[2])) is not None:
        found = texts(request, max(fields))
        entry.model, entry.version, entry.id = (found.get(number, "") for number in fields)
    return entry


def texts(message: Buffer, most: int) -> Mapping[int, str]:
    """The texts in the fields 1 to `most` at the start of a message, by their numbers.

    Every writer puts fields in the order of their numbers, and these come first: nothing else is
    read, and what is in the least unusual ends the search.
    """
    found: dict[int, str] = {}
    at, end = 0, len(message)
    while at + 1 < end:
        key = message[at]
        if key & 7 != 2 or not 0 < key >> 3 <= most:
            break
        size, shift, at = 0, 0, at + 1
        while at < end and shift < 35:
            byte = message[at]
            at += 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if at + size > end:
            break
        found[key >> 3] = bytes(message[at : at + min(size, 4096)]).decode(errors="replace")
        at += size
    return found
