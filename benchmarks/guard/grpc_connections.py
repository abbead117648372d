"""GrpcClients: connections without sockets for gRPC, over the nghttp2 engine, which is optional."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import count

from benchmarks.exchange import GRPC_PATH, Exchange, read_grpc
from benchmarks.guard import frames
from benchmarks.guard.connections import Turns, Written
from benchmarks.models.sample import Answer
from core.server import InferenceServer
from frontends.grpc import transport as grpc_options
from frontends.grpc.engine_native import _Protocol
from frontends.grpc.native.engine_context import EngineContext
from frontends.grpc.options import GrpcOptions
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.table import methods
from frontends.shared.call_observers import CallObservers


class GrpcClients:
    """Clients that repeat the requests of an Exchange, like HttpClients. Loop thread."""

    def __init__(
        self, server: InferenceServer, asked: Exchange, transports: Sequence[Written], turns: Turns
    ):
        self._messages = [request.body for request in asked.requests]
        self._turns = turns
        self.asked: Sequence[int] = [0] * len(transports)
        self.transports = transports
        options = GrpcOptions.of(server.options)
        table = methods(server, RequestsInFlight())
        port = EngineContext(
            {GRPC_PATH: table[GRPC_PATH]},
            options,
            asyncio.get_running_loop(),
            grpc_options.compression_level(options),
            grpc_options.MOST_MESSAGE_BYTES,
            server.account,
            CallObservers.of(server),
        )
        self._protocols = [_Protocol(port) for _ in transports]
        for protocol, transport in zip(self._protocols, transports, strict=True):
            protocol.connection_made(transport)
            _receive(protocol, frames.opening())
            transport.count = 0
        self._numbers: Iterator[int] = count(1, 2)  # stream numbers, one for each call
        self._calls: Iterator[tuple[list[int], list[bytes]]] = iter(())
        self._same_calls: Iterator[bytes] | None = None  # if there is only one request

    def prepare(self, requests: int) -> None:
        """Encode the next `requests` requests of each connection; drop earlier ones."""
        rounds = [self._round(next(self._numbers)) for _ in range(requests)]
        self._calls = iter(rounds)
        if len(self._messages) == 1:
            self._same_calls = iter([calls[0] for _, calls in rounds])

    def _round(self, number: int) -> tuple[list[int], list[bytes]]:
        """Return the calls on stream `number` of each connection: numbers and bytes of their requests."""
        asked = self._turns.next()
        made = {i: frames.call(number, self._messages[i], first=number == 1) for i in set(asked)}
        return asked, [made[i] for i in asked]

    def ask(self) -> None:
        """Send one request on each connection."""
        if self._same_calls is not None:  # keep the client's work out of the count
            data = next(self._same_calls)
            for protocol in self._protocols:
                _receive(protocol, data)
            return
        self.asked, calls = next(self._calls)
        for protocol, data in zip(self._protocols, calls, strict=True):
            _receive(protocol, data)

    def close(self) -> None:
        for protocol in self._protocols:
            protocol.connection_lost(None)

    @staticmethod
    def read(answer: bytes) -> Answer:
        """Return the content of a response."""
        return read_grpc(frames.messages(answer)[0])


def _receive(protocol: _Protocol, data: bytes) -> None:
    protocol.get_buffer(-1)[: len(data)] = data
    protocol.buffer_updated(len(data))
