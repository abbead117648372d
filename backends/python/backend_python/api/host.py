"""Host: the connection of these classes to the server.

In a child process it uses the channel to the server, in the server's own process it calls the server.
Answers receives the responses to a call of another model, in any process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, Protocol

from backend_python.api.errors import TritonModelException
from backend_python.api.response import InferenceResponse

Key = tuple[Any, int]  # the batch (a number in a child) and the request's index in it


class Answers(Protocol):
    """The responses to one call of another model. One thread at a time."""

    def wait(self) -> InferenceResponse | None:
        """Wait on this thread for the next response and return it; None after the last."""

    async def arrival(self) -> InferenceResponse | None:
        """Wait in a coroutine for the next response and return it; None after the last."""

    def cancel(self) -> None:
        """Ask the called model to stop. Its later responses still arrive. After the end, do nothing."""

    def drop(self) -> None:
        """Discard the remaining responses. Must not block."""


class Host(Protocol):
    """The connection of one model to the server. Any thread of the model."""

    model_directory: str  # return value of get_model_dir()
    serving: bool  # initialize has returned, finalize has not begun

    def log(self, level: int, file: str, line: int, text: str) -> None:
        """Write a line to the server's log; level is a LogLevel."""

    def send(
        self,
        key: Key,
        wanted: frozenset[str],
        response: InferenceResponse | None,
        flags: int,
        pace: Any,
    ) -> None:
        """Send a response to a request, before or after execute returns; only the `wanted` outputs.

        pace   return value of `pace`; it may make the sender wait until the client has read responses
        """

    def pace(self, key: Key) -> Any:
        """Return the object that a response sender passes to `send` with each response."""

    def is_cancelled(self, key: Key) -> bool:
        """Return whether a request is cancelled."""

    def abandon(self, key: Key) -> None:
        """Report that a response sender ended without its last response. Must not block or raise."""

    def call(self, operation: str, arguments: dict[str, Any]) -> Any:
        """Call the server and return its reply. Raises TritonModelException with its text if it refuses."""

    def infer(self, request: Any, decoupled: bool, *, blocking: bool) -> Answers:
        """Begin a call of another model; `blocking` if this thread will wait for the responses.

        Raises TritonModelException if the model must not call now. An error of the call itself is a
        response with an error.
        """

    def drop(self, what: str, number: int) -> None:
        """Report that the model has deleted the object whose number a call returned. Must not block."""


_process: Host | None = None  # the only host of a child process
_answering: ContextVar[bool] = ContextVar("answering", default=False)
running_host: ContextVar[Host] = ContextVar("host")
"""In the server's process: the host of the model that runs in this thread or task, set by `running`."""


class Outer:
    """The batch to which a coroutine's calls of other models belong: `with Outer(batch)` at its start.

    batch   as in Key; None after `end`
    """

    __slots__ = ("_token", "batch")

    def __init__(self, batch: Any):
        self.batch = batch

    def __enter__(self) -> Outer:
        self._token = running_outer.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        running_outer.reset(self._token)

    def end(self) -> None:
        """Mark the execution as ended: later calls of its tasks belong to no batch."""
        self.batch = None


running_outer: ContextVar[Outer | None] = ContextVar("outer")


hosts_of_modules: dict[str, Host] = {}
"""In the server's process: the hosts of its models, by module name of the model's file."""


def current() -> Host:
    """Return the host of the calling model. Raises TritonModelException outside of a model."""
    if _process is not None:
        return _process
    host = running_host.get(None) or _of_a_caller()
    if host is None:
        raise TritonModelException(
            "triton_python_backend_utils can only be used by a model that the server runs; in "
            "EXECUTION_MODE thread and inline, only within its initialize, execute and finalize, and "
            "by threads that run code of its model.py."
        )
    return host


def _of_a_caller() -> Host | None:
    """Return the host of the model whose file is on this thread's stack; None if there is none.

    This serves threads that a model started in the server's process: they do not inherit the context of the
    model, as threads in worker processes do.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if (host := hosts_of_modules.get(frame.f_globals.get("__name__", ""))) is not None:
            return host
        frame = frame.f_back
    return None


def set_process_host(host: Host | None) -> None:
    """Set the host of all threads, for a process that runs one model."""
    global _process
    _process = host


def may_call(host: Host) -> bool:
    """Return whether the model of `host` may call other models now, from this thread or task."""
    return host.serving and not _answering.get()


@contextmanager
def answering() -> Iterator[None]:
    """Refuse calls of other models in this thread or task, while it runs a model's is_ready."""
    token = _answering.set(True)
    try:
        yield
    finally:
        _answering.reset(token)


def no_inference(serving: bool) -> str:
    """Return the error text of a refused call of another model."""
    if not serving:
        return "BLS is only supported during the 'execute' function."
    return "calling other models (BLS) is not available to Python models of this server"


class running:
    """Context manager: make `host` the current one of this thread or task."""

    __slots__ = ("_host", "_token")

    def __init__(self, host: Host):
        self._host = host

    def __enter__(self) -> None:
        self._token = running_host.set(self._host)

    def __exit__(self, *_: object) -> None:
        running_host.reset(self._token)
