"""CallObservers: what plugins register to see calls as they came: payload loggers, captures of traffic.

request bytes ─► [CallObservers.begin] ─► CallObservation: receive, send, end.  HTTP and gRPC.

A frontend tests `begin` for each request: None costs one comparison. Observers may be added and removed while
the server runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from core.server import InferenceServer
from core.tensor import Buffer

logger = logging.getLogger("core")

Message = Buffer | list[Buffer]
"""Bytes of one message, whole or in parts. Valid and unchanged as long as they are referenced."""


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """One call, when its first message is complete.

    protocol   name of the frontend that serves it: "http", "grpc", or that of another port
    head       start line and header fields as HTTP/1.1 writes them, each with its line end, without the empty
               line. gRPC has `POST /package.Service/Method HTTP/2` and its metadata; values of keys that end
               in -bin are base64
    category   of roles and restrictions, such as "inference"
    model      name in the path or in the first message; "" if neither has one
    version    of the model, as the client wrote it; "" for none
    client     address and port; "" for a Unix domain socket
    caller     name of an identified caller, else ""
    """

    protocol: str
    head: bytes
    category: str
    model: str = ""
    version: str = ""
    client: str = ""
    caller: str = ""

    @property
    def method(self) -> str:
        """Return the method of HTTP, in capitals; POST for gRPC."""
        return self.head[: self.head.find(b" ")].decode("latin-1")

    @property
    def target(self) -> str:
        """Return path and query as the client sent them, or /package.Service/Method."""
        line = self.head[: self.head.find(b"\r\n")].decode("latin-1")
        return line.partition(" ")[2].rpartition(" ")[0]


class CallObservation(Protocol):
    """Observes one call: `receive` and `send` for each message, then `end` once.

    All methods run on the event loop, must return within microseconds, and keep messages only by reference.
    One that raises is logged, and misses the rest of its call.
    """

    def receive(self, message: Message) -> None:
        """Take a message of the client: the body of HTTP, as it came; or a message of gRPC, decompressed."""

    def send(self, message: Message) -> None:
        """Take a message for the client: a body of HTTP or a part of it; or one of gRPC, not compressed."""

    def end(self, status: int, head: bytes) -> None:
        """Take the end of the call.

        status   of HTTP, 499 if the client has disconnected; or the status code of gRPC
        head     of the response in the form of ObservedCall.head; for gRPC the trailer `grpc-message`, if
                 there is one; b"" if nothing was sent
        """


class CallObserver(Protocol):
    """Is asked at the beginning of each call. If it raises, that is logged, and it misses the call."""

    def begin(self, call: ObservedCall) -> CallObservation | None:
        """Return what observes the call; None to ignore it. Event loop; must return within microseconds."""


class CallObservers:
    """The observers of one server. Not thread-safe: call from the event loop only.

    begin   for frontends: None while there is no observer; else a function that returns what observes the
            call, None for nothing
    """

    def __init__(self, server: InferenceServer | None = None):
        self._observers: tuple[CallObserver, ...] = ()
        self.begin: Callable[[ObservedCall], CallObservation | None] | None = None

    @staticmethod
    def of(server: InferenceServer) -> CallObservers:
        """Return the observers of a server: the same object at every call."""
        return server.shared(CallObservers)

    def add(self, observer: CallObserver) -> None:
        """Ask `observer` for all calls from now on."""
        self._observers = (*self._observers, observer)
        self.begin = self._begin

    def remove(self, observer: CallObserver) -> None:
        """Ask `observer` no more; calls that it observes go on. Does nothing for an unknown observer."""
        self._observers = tuple(each for each in self._observers if each is not observer)
        self.begin = self._begin if self._observers else None

    async def close(self) -> None:
        """Forget the observers, because the server has stopped."""
        self._observers, self.begin = (), None

    def _begin(self, call: ObservedCall) -> CallObservation | None:
        begun = []
        for observer in self._observers:
            try:
                found = observer.begin(call)
            except Exception:
                logger.exception("an observer of calls failed; it misses %s", call.target)
                continue
            if found is not None:
                begun.append(found)
        return _Observations(begun) if begun else None


class _Observations:
    """The observations of one call, as one. One that raises is left out for the rest of the call."""

    __slots__ = ("_observations",)

    def __init__(self, observations: list[CallObservation]):
        self._observations = observations

    def receive(self, message: Message) -> None:
        for each in tuple(self._observations):
            self._call(each, each.receive, message)

    def send(self, message: Message) -> None:
        for each in tuple(self._observations):
            self._call(each, each.send, message)

    def end(self, status: int, head: bytes) -> None:
        for each in tuple(self._observations):
            self._call(each, each.end, status, head)
        self._observations = []

    def _call(
        self, observation: CallObservation, method: Callable[..., None], *arguments: object
    ) -> None:
        try:
            method(*arguments)
        except Exception:
            logger.exception("an observer of calls failed; it misses the rest of a call")
            self._observations.remove(observation)
