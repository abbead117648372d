"""Host: what the classes of this interface need from outside.

In a child it is the channel to the server, in the server's own process the server itself.
Answers is what a call of another model gives, wherever the caller runs.
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

Key = tuple[Any, int]  # the batch (a number in a child) and the request's place in it


class Answers(Protocol):
    """The responses to one call of another model. One thread at a time."""

    def wait(self) -> InferenceResponse | None:
        """The next response; waits for it on this thread. None if no more come."""

    async def arrival(self) -> InferenceResponse | None:
        """The same, to be awaited."""

    def cancel(self) -> None:
        """Ask the called model to stop. What it still answers comes; after the end, nothing happens."""

    def drop(self) -> None:
        """Nobody wants the rest. Must not block."""


class Host(Protocol):
    """All methods may be called from any thread of the model."""

    model_directory: str  # what get_model_dir() answers
    serving: bool  # initialize has returned, finalize has not begun

    def log(self, level: int, file: str, line: int, text: str) -> None:
        """A line for the server's log; level is a LogLevel."""

    def send(
        self,
        key: Key,
        wanted: frozenset[str],
        response: InferenceResponse | None,
        flags: int,
        pace: Any,
    ) -> None:
        """An answer to a request before, or after, execute has returned; only `wanted` outputs.

        pace   of the sender; may make it wait until the client has read some of those before
        """

    def pace(self, key: Key) -> Any:
        """What a response sender hands to `send` with each of its answers."""

    def is_cancelled(self, key: Key) -> bool:
        """Whether nobody waits for that request any more."""

    def abandon(self, key: Key) -> None:
        """A response sender is gone that owed that request its last answer. Must not block, nor raise."""

    def call(self, operation: str, arguments: dict[str, Any]) -> Any:
        """Ask the server and wait for its answer. TritonModelException with its text if it refuses."""

    def infer(self, request: Any, decoupled: bool, *, blocking: bool) -> Answers:
        """Begin a call of another model; `blocking` if this thread will wait for the answers.

        TritonModelException if the model must not call now. What is wrong with the call itself comes
        as a response with an error.
        """

    def drop(self, what: str, number: int) -> None:
        """The object of that number (of a call's answer) is gone here. Must not block."""


_process: Host | None = None  # of a child: the only one
_answering: ContextVar[bool] = ContextVar("answering", default=False)
running_host: ContextVar[Host] = ContextVar("host")
"""In the server's process: of the model that runs in this thread, or task. See `running`."""


class Outer:
    """The batch that calls of other models in a coroutine belong to: `with Outer(batch)` where it starts.

    batch   as in Key; None when it is over
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
        """The execution is over. Tasks that live on have no part in it."""
        self.batch = None


running_outer: ContextVar[Outer | None] = ContextVar("outer")


hosts_of_modules: dict[str, Host] = {}
"""In the server's process: those of the models there, by the names that their files are imported as."""


def current() -> Host:
    """The host of the model that calls. TritonModelException outside of a model."""
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
    """Of the model whose file this thread runs code of: one that a model has started has no context of it.

    Not by having threads inherit contexts, as workers do: in the server's process they are not ours.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if (host := hosts_of_modules.get(frame.f_globals.get("__name__", ""))) is not None:
            return host
        frame = frame.f_back
    return None


def set_process_host(host: Host | None) -> None:
    """This process runs one model: `host` is what all its threads use."""
    global _process
    _process = host


def may_call(host: Host) -> bool:
    """Whether a model may call others now, from where it is."""
    return host.serving and not _answering.get()


@contextmanager
def answering() -> Iterator[None]:
    """This thread, or task, asks a model whether it is ready: it calls no other models."""
    token = _answering.set(True)
    try:
        yield
    finally:
        _answering.reset(token)


def no_inference(serving: bool) -> str:
    """Why a call of another model is refused."""
    if not serving:
        return "BLS is only supported during the 'execute' function."
    return "calling other models (BLS) is not available to Python models of this server"


class running:
    """This thread, or task, runs a model of `host` for a while."""

    __slots__ = ("_host", "_token")

    def __init__(self, host: Host):
        self._host = host

    def __enter__(self) -> None:
        self._token = running_host.set(self._host)

    def __exit__(self, *_: object) -> None:
        running_host.reset(self._token)
