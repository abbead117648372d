"""Stop: ends the work for one request from another thread, also while that work waits for a socket."""

from __future__ import annotations

import contextlib
import socket
import threading


class Stopped(Exception):
    """The request is over; its work ends."""


class Stop:
    """Flag of one request, with the sockets on which its thread may wait. Thread-safe."""

    def __init__(self) -> None:
        self._set = threading.Event()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()

    @property
    def is_set(self) -> bool:
        return self._set.is_set()

    def set(self) -> None:
        """Stop the work: `check` and `wait` raise, and reads of the sockets end at once. Never blocks."""
        with self._lock:
            self._set.set()
            for each in self._sockets:
                _shut_down(each)

    def check(self) -> None:
        """Raise Stopped if the request is over."""
        if self._set.is_set():
            raise Stopped

    def wait(self, seconds: float) -> None:
        """Sleep. Raise Stopped as soon as the request is over."""
        self._set.wait(max(0.0, seconds))
        self.check()

    def add(self, one: socket.socket) -> None:
        """Shut a socket down when the request is over, now if it is. The caller closes and removes it."""
        with self._lock:
            self._sockets.add(one)
            if self._set.is_set():
                _shut_down(one)

    def remove(self, one: socket.socket) -> None:
        """Forget a socket. Do so before it is closed, because its number may then belong to another one."""
        with self._lock:
            self._sockets.discard(one)


def _shut_down(one: socket.socket) -> None:
    # The method of socket, since that of SSLSocket changes the object under its reader.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(one, socket.SHUT_RDWR)
