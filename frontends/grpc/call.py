"""GrpcCall: a call as its method sees it. It names no transport."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import cython

from frontends.grpc.status import Code

Metadata = Sequence[tuple[str, str | bytes]]

# A client counts its deadline from the moment at which it sends, the server from that at which it reads.
_CLIENTS_LEAD_NS = 10_000_000


class Source(Protocol):
    """What a call asks of its engine, on demand: metadata, who its client is, the account of its memory."""

    def metadata(self) -> Metadata: ...
    def peer(self) -> str: ...
    def certificate(self) -> str: ...
    def hold(self, size: int, what: str) -> None: ...
    def release(self, size: int) -> None: ...


@cython.freelist(32)
@cython.cclass
class GrpcCall:
    """One call. Made by the engine. Not thread-safe: call from the event loop only.

    metadata      pairs of key in lower case and value as the client sent them; values are text, or bytes for
                  keys that end in -bin. None: the call asks the source for them when they are needed
    deadline_ns   time.monotonic_ns() at the client's deadline; 0 for none
    cancelled     whether the client has disconnected, or its deadline has passed
    source        the engine's own object for the call; None for none
    """

    def __init__(self, metadata: Metadata | None = (), deadline_ns: int = 0, source: Any = None):
        self._metadata = metadata
        self._source = source
        self.deadline_ns = deadline_ns
        self.cancelled = False
        self.active: Any = (
            None  # an ActiveCall, where calls are checked or logged; see Method.enter
        )
        self.observation: Any = None  # a CallObservation, if an observer wants the call
        self.bytes_out = 0  # of messages, counted where there is an ActiveCall
        self._listeners: list[Callable[[], None]] | None = None

    @property
    def metadata(self) -> Metadata:
        if self._metadata is None:
            self._metadata = self._source.metadata()
        return self._metadata

    @property
    def peer(self) -> str:
        """Return the client's address as gRPC writes it, such as "ipv4:127.0.0.1:40000"; "" if unknown."""
        return "" if self._source is None else self._source.peer()

    @property
    def certificate(self) -> str:
        """Return the name in the certificate of the client; "" if it has shown none."""
        return "" if self._source is None else self._source.certificate()

    def value(self, key: str) -> str | bytes | None:
        """Return the metadata `key`, the last one if it came several times; None if it did not come."""
        for name, value in reversed(self.metadata):
            if name == key:
                return value
        return None

    def hold(self, size: int, what: str) -> None:
        """Count `size` bytes of `what` in the server's account until the call is over, or `release`.

        Raises MemoryExhausted.
        """
        if self._source is not None:
            self._source.hold(size, what)

    def release(self, size: int) -> None:
        """Stop counting `size` of the bytes that `hold` has counted."""
        if self._source is not None:
            self._source.release(size)

    @property
    def expired(self) -> bool:
        """Return whether the client's deadline has passed or passes within 10 ms; False if it set none."""
        if not self.deadline_ns:
            return False
        return time.monotonic_ns() >= self.deadline_ns - _CLIENTS_LEAD_NS

    def sent(self, message: Any) -> None:
        """Add the size of a message, whole or in parts, to `bytes_out`, and pass it to `observation`.

        For the engine, which calls this only where `active` or `observation` is not None.
        """
        if self.observation is not None:
            self.observation.send(message)
        if isinstance(message, bytes):
            self.bytes_out += len(message)
            return
        for part in message:
            self.bytes_out += memoryview(part).nbytes

    def end(self, code: int, text: str = "") -> None:
        """End `active` and `observation`, if they are there, with status code and text. For the engine.

        CANCELLED becomes DEADLINE_EXCEEDED if the deadline has passed: the client sees that.
        """
        if code == Code.CANCELLED and self.expired:
            code = Code.DEADLINE_EXCEEDED
        if self.observation is not None:
            observation, self.observation = self.observation, None
            head = f"grpc-message: {text}\r\n" if text else ""
            observation.end(int(code), head.encode("utf-8", "surrogateescape"))
        if self.active is not None:
            self.active.end(code, self.bytes_out)

    def on_cancel(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the call is cancelled; at once if it already is."""
        if self.cancelled:
            listener()
        elif self._listeners is None:
            self._listeners = [listener]
        else:
            self._listeners.append(listener)

    def cancel(self) -> None:
        """Set `cancelled`, and call the listeners of `on_cancel`. A second call of this does nothing."""
        if self.cancelled:
            return
        self.cancelled = True
        listeners, self._listeners = self._listeners, None
        for listener in listeners or ():
            listener()


def new_call(source: Source, deadline_ns: int) -> GrpcCall:
    """Return a GrpcCall that asks `source` for its metadata when they are needed."""
    call: GrpcCall = GrpcCall.__new__(GrpcCall)
    call._source = source
    call._metadata = None
    call.deadline_ns = deadline_ns
    call.cancelled = False
    call.active = None
    call.observation = None
    call.bytes_out = 0
    call._listeners = None
    return call
