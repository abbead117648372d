"""GrpcSender: sends records of gRPC as they came."""

from __future__ import annotations

import asyncio
import base64
import binascii
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import grpc
import grpc.aio

from core_capture.recording.headers import REDACTED
from core_capture.records.record import Record
from core_capture.replay.outcome import Outcome
from core_capture.replay.tls import Tls

_OF_THE_TRANSPORT = frozenset(
    (
        "content-type",
        "te",
        "user-agent",
        "grpc-timeout",
        "grpc-encoding",
        "grpc-accept-encoding",
        "accept-encoding",
    )
)
_UNITS_NS = {"n": 1, "u": 10**3, "m": 10**6, "S": 10**9, "M": 60 * 10**9, "H": 3600 * 10**9}
_CANCELLED = 1
_UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class GrpcSender:
    """Sends records to a server over gRPC (outcome.Sender).

    address   host:port
    headers   metadata in place of those of the records
    timeout_s   for a whole call, unless its client had set a shorter one
    tls         certificates; None without TLS. Raises CoreError(INVALID) for those that cannot be used
    """

    def __init__(
        self, address: str, headers: Mapping[str, str], timeout_s: float, tls: Tls | None = None
    ):
        self._address = address.partition("://")[2] or address
        self._headers = {name.lower(): value for name, value in headers.items()}
        self._timeout_s = timeout_s
        self._credentials = None if tls is None else tls.credentials()
        self._channel: grpc.aio.Channel | None = None

    async def send(
        self, record: Record, speed: float, begun: Callable[[], None] | None = None
    ) -> Outcome:
        if self._channel is None:
            self._channel = self._connected()
        start_ns = time.monotonic_ns()
        messages: list[bytes] = []
        came = asyncio.Condition()
        # gRPC has one form for calls with one message and for streams.
        method: Any = self._channel.stream_stream(record.path)
        call = method(
            _paced(record, speed, messages, came),
            timeout=self._timeout_of(record),
            metadata=self._metadata(record),
        )
        if begun is not None:
            begun()  # calls of one channel keep their order
        if record.gone:
            limit_s = 0.0 if math.isinf(speed) else record.duration_ns / 1e9 / speed
            asyncio.get_running_loop().call_later(limit_s, call.cancel)
        outcome = await _outcome(call, messages, came)
        outcome.ended = record.gone and outcome.status == _CANCELLED
        outcome.duration_ns = time.monotonic_ns() - start_ns
        return outcome

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()

    def _connected(self) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self._address, options=_UNLIMITED)
        return grpc.aio.secure_channel(self._address, self._credentials, options=_UNLIMITED)

    def _timeout_of(self, record: Record) -> float:
        for name, value in record.fields:
            if name == "grpc-timeout" and value[:-1].isdecimal() and value[-1:] in _UNITS_NS:
                return min(self._timeout_s, int(value[:-1]) * _UNITS_NS[value[-1]] / 1e9)
        return self._timeout_s

    def _metadata(self, record: Record) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = list(self._headers.items())
        for name, value in record.fields:
            if name in _OF_THE_TRANSPORT or name in self._headers or value == REDACTED:
                continue
            if name.endswith("-bin"):
                try:
                    found.append((name, base64.b64decode(value)))
                except binascii.Error:
                    continue
            else:
                found.append((name, value))
        return found


async def _paced(
    record: Record, speed: float, answers: list[bytes], came: asyncio.Condition
) -> AsyncIterator[bytes]:
    """Generate the messages of a client: each at its time, and after the answers that came before it."""
    start_ns = time.monotonic_ns()
    for message in record.received:
        if not math.isinf(speed):
            left_ns = message.at_ns / speed - (time.monotonic_ns() - start_ns)
            if left_ns > 0:
                await asyncio.sleep(left_ns / 1e9)
        before = sum(each.at_ns < message.at_ns for each in record.sent)
        async with came:
            await came.wait_for(lambda least=before: len(answers) >= least)  # type: ignore[misc]
        yield message.data


async def _outcome(call: Any, messages: list[bytes], came: asyncio.Condition) -> Outcome:
    try:
        async for message in call:
            messages.append(message)
            async with came:
                came.notify_all()
        return Outcome(0, messages=messages)
    except grpc.aio.AioRpcError as error:
        return Outcome(_code(error), messages=messages, text=error.details() or "")
    except asyncio.CancelledError:
        if not call.cancelled():
            raise
        return Outcome(_CANCELLED, messages=messages, text="cancelled as recorded")


def _code(error: grpc.aio.AioRpcError) -> int:
    code: int = error.code().value[0]
    return code
