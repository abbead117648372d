"""The same as connections.py over the engine on nghttp2, which is not in every installation."""

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


class GrpcClients:
    """Clients that send the requests of an Exchange again and again; see HttpClients. Loop thread."""

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
        )
        self._protocols = [_Protocol(port) for _ in transports]
        for protocol, transport in zip(self._protocols, transports, strict=True):
            protocol.connection_made(transport)
            _receive(protocol, frames.opening())
            transport.count = 0
        self._numbers: Iterator[int] = count(1, 2)  # each stream of a connection has its own
        self._calls: Iterator[tuple[list[int], list[bytes]]] = iter(())
        self._same_calls: Iterator[bytes] | None = None  # where there is one request only

    def prepare(self, requests: int) -> None:
        """Make the bytes of so many requests for each connection; whatever was made before is gone."""
        rounds = [self._round(next(self._numbers)) for _ in range(requests)]
        self._calls = iter(rounds)
        if len(self._messages) == 1:
            self._same_calls = iter([calls[0] for _, calls in rounds])

    def _round(self, number: int) -> tuple[list[int], list[bytes]]:
        """Calls on stream `number` of each connection: which requests they are, and their bytes."""
        asked = self._turns.next()
        made = {i: frames.call(number, self._messages[i], first=number == 1) for i in set(asked)}
        return asked, [made[i] for i in asked]

    def ask(self) -> None:
        """One request on each connection."""
        if self._same_calls is not None:  # nothing of the client's own is to be counted
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
        """What is in the bytes of an answer."""
        return read_grpc(frames.messages(answer)[0])


def _receive(protocol: _Protocol, data: bytes) -> None:
    protocol.get_buffer(-1)[: len(data)] = data
    protocol.buffer_updated(len(data))
