"""Call: what a method may know of the call it answers. It names no transport."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import cython

Metadata = Sequence[tuple[str, str | bytes]]


class Source(Protocol):
    """Where the metadata of a call is until somebody asks for it."""

    def metadata(self) -> Metadata: ...
    def peer(self) -> str: ...


@cython.freelist(32)
@cython.cclass
class Call:
    """One call. Made by the engine; loop thread only.

    metadata      pairs as the client sent them; keys in lower case, those that end in -bin have bytes
    deadline_ns   time.monotonic_ns() after which the client waits no more; 0 for none
    cancelled     whether the client is gone, or its deadline has passed
    source        the engine's own object for the call, which knows where it comes from; None for nobody
    """

    def __init__(self, metadata: Metadata = (), deadline_ns: int = 0, source: Any = None):
        self._metadata: Metadata | None = metadata
        self._source = source
        self.deadline_ns = deadline_ns
        self.cancelled = False
        self.caller: Any = None  # a Pass, where calls are let in by a gate
        self._listeners: list[Callable[[], None]] | None = None

    @property
    def metadata(self) -> Metadata:
        if self._metadata is None:
            self._metadata = self._source.metadata()
        return self._metadata

    @property
    def peer(self) -> str:
        """Where it comes from, as gRPC writes it: "ipv4:127.0.0.1:40000"; "" if nobody knows."""
        return "" if self._source is None else self._source.peer()

    def value(self, key: str) -> str | bytes | None:
        """The metadata `key`, the last one if it came several times; None if it did not come."""
        for name, value in reversed(self.metadata):
            if name == key:
                return value
        return None

    def on_cancel(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the call is cancelled; at once if it already is."""
        if self.cancelled:
            listener()
        elif self._listeners is None:
            self._listeners = [listener]
        else:
            self._listeners.append(listener)

    def cancel(self) -> None:
        """Nobody waits any more. For the engine; a second call does nothing."""
        if self.cancelled:
            return
        self.cancelled = True
        listeners, self._listeners = self._listeners, None
        for listener in listeners or ():
            listener()


def made_call(source: Source, deadline_ns: int) -> Call:
    """A Call whose metadata is asked for when it is needed, for who makes one for every request."""
    call: Call = Call.__new__(Call)
    call._source = source
    call._metadata = None
    call.deadline_ns = deadline_ns
    call.cancelled = False
    call._listeners = None
    return call
