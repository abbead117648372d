"""Server: a model server in this process.

    with core.Server(model_repository="models/") as server:
        answer = server.infer("m", {"x": array})["y"]

[Server] ─► mailbox ─► loop thread ─► core.server.Server.  The whole server runs on one thread of its own;
every method here may be called by any other thread, but for those that say otherwise.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypedDict

from core.embedded.asking import AskedByTask, AskedByThread, Desk, deadline, inside
from core.embedded.functions import Specs, bound
from core.embedded.mailbox import FORKED, STOPPED, LoopThread, waits_for_itself
from core.embedded.managing import Managing
from core.embedded.running import Running, checked_ports
from core.embedded.settings import options_of
from core.embedded.streams import AsyncStream, Stream
from core.embedded.values import Inputs, Response, request_of
from core.errors import unavailable
from core.request import Parameter, RequestedOutput
from core.server import InferenceServer as Inner
from core.telemetry import log

if TYPE_CHECKING:
    from typing_extensions import Unpack

_NOT_STARTED = "the server is not started: call start(), or use it in a with block"


class How(TypedDict, total=False):
    """What a request may say beside its inputs.

    version           of the model, by default the newest
    id                the caller's own name for the request
    outputs           those that are wanted, as names or core.RequestedOutput; by default all. Those given
                      as core.DeviceOutput may stay on a device
    parameters        for the model: name → bool | int | float | str
    correlation_id    sequence that the request belongs to
    sequence_start, sequence_end   whether it is the first, the last of its sequence
    priority          1 is the highest; 0 for the model's default
    queue_timeout_us  wish for the longest time in the queue
    """

    version: int | str
    id: str
    outputs: Sequence[str | RequestedOutput]
    parameters: Mapping[str, Parameter] | None
    correlation_id: int | str
    sequence_start: bool
    sequence_end: bool
    priority: int
    queue_timeout_us: int


class Server(Managing):
    """Models of repositories, and functions that are bound, asked by the program they run in.

    options   every option of core-serve by its name with underscores; model_repository may be one
              folder or several, and none at all for a server of functions
    Raises CoreError(INVALID) for an option that there is not, or that cannot have that value.

    Nothing happens before `start` (or the beginning of a `with` or `async with` block). It ends with
    `stop` (the end of the block), and by itself when the interpreter ends; it cannot start again. A
    process that is forked from this one has no part of the server: its calls raise
    CoreError(UNAVAILABLE).
    """

    def __init__(self, **options: Any):
        self.options = options_of(options)
        self._logs = any(name.startswith("log_") for name in options)
        self._lock = threading.Lock()  # of start and stop
        self._thread: LoopThread | None = None
        self._closed = _NOT_STARTED  # why there is no thread
        self._ended = threading.Event()

    # start and end ----------------------------------------------------------

    def start(self) -> Server:
        """Load the models that the control mode says; returns itself when they are ready.

        Raises CoreError when a repository cannot be read or a model fails (exit_on_error=False lets
        the others serve); then nothing is left of the server. A second call does nothing.
        """
        with self._lock:
            if self._thread is not None:
                return self
            if self._closed != _NOT_STARTED:
                raise unavailable(self._closed)
            if self._logs:
                log.configure(self.options)
            thread = LoopThread("core-server")
            self._desk = Desk(thread)
            self._running = Running(self.options, self._desk)
            try:
                thread.call(self._running.start())
            except BaseException:
                self._closed = STOPPED
                self._end(thread, 0.0)
                raise
            self._thread = thread
            _started.add(self)
        return self

    def stop(self, timeout: float | None = None) -> None:
        """Take nothing new, finish what is in flight, unload everything, end the thread.

        timeout   seconds, by default exit_timeout_secs; who still waits for an answer then gets
                  CoreError(UNAVAILABLE)
        Never raises for what models do; a second call does nothing. Not for functions on the server's
        own thread: CoreError(INVALID).
        """
        with self._lock:
            if (thread := self._thread) is None:
                return
            if thread.is_here:
                raise waits_for_itself("stop")
            self._thread, self._closed = None, STOPPED
            try:
                self._end(thread, self.options.exit_timeout_secs if timeout is None else timeout)
            finally:
                _started.discard(self)
                self._ended.set()

    def _end(self, thread: LoopThread, timeout_s: float) -> None:
        complete = False
        try:
            complete = thread.call(self._running.stop(timeout_s))
        finally:  # also for somebody who presses ^C again
            thread.end(complete=complete)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Server:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    def wait(self, timeout: float | None = None) -> bool:
        """Do nothing until another thread calls `stop`, or ^C: for a program that only serves.

        Returns whether the server has stopped within `timeout` seconds.
        """
        return self._ended.wait(timeout)

    # requests ----------------------------------------------------------------

    def infer(
        self, model: str, inputs: Inputs, *, timeout: float | None = None, **how: Unpack[How]
    ) -> Response:
        """Ask a model and wait for its one answer.

        inputs    name → numpy array, anything with __dlpack__ (on a device too), list of str or bytes.
                  With rows first where the model batches. Not copied: they must not change until the answer
        timeout   seconds after which nobody waits: Timeout is raised and the request is cancelled
        how       as in How
        Raises CoreError as the model or the server gives it. KeyboardInterrupt cancels the request.
        Requests of several threads share batches.
        """
        desk = self._opened_desk()
        request = request_of(model, inputs, **how)
        if timeout is not None:
            deadline(request, timeout)
        return AskedByThread(desk, request).wait(timeout)

    async def infer_async(
        self, model: str, inputs: Inputs, *, timeout: float | None = None, **how: Unpack[How]
    ) -> Response:
        """The same for a coroutine on any loop; the cancellation of its task cancels the request."""
        desk = self._opened_desk()
        request = request_of(model, inputs, **how)
        if timeout is not None:
            deadline(request, timeout)
        return await AskedByTask(desk, request).wait(timeout)

    def stream(
        self, model: str, inputs: Inputs, *, timeout: float | None = None, **how: Unpack[How]
    ) -> Stream:
        """Ask a model and iterate over its answers, any number of them, as they come.

        timeout   seconds until the last of them
        The model waits for a reader that is slower than it; one that takes nothing for a minute while
        the model waits loses the rest. Refusals are raised by the first `next`.
        """
        desk = self._opened_desk()
        request = request_of(model, inputs, **how)
        deadline(request, timeout)
        return Stream(desk, request, timeout)

    def stream_async(
        self, model: str, inputs: Inputs, *, timeout: float | None = None, **how: Unpack[How]
    ) -> AsyncStream:
        """The same for `async for`, on any loop. Called where that loop runs."""
        desk = self._opened_desk()
        request = request_of(model, inputs, **how)
        deadline(request, timeout)
        return AsyncStream(desk, request, timeout)

    # functions ---------------------------------------------------------------

    def bind(
        self,
        name: str,
        function: Callable[..., Any] | Sequence[Callable[..., Any]],
        *,
        inputs: Specs | None = None,
        outputs: Specs | None = None,
        example: Inputs | None = None,
        batching: bool = False,
        max_batch_size: int | None = None,
        max_queue_delay_microseconds: int = 0,
        preferred_batch_size: Sequence[int] = (),
        instances: int = 1,
        placement: str = "thread",
        requests: bool = False,
        config: Mapping[str, Any] | None = None,
        memory: str = "host",
    ) -> None:
        """Make a function a model, which all who ask this server can reach. Returns when it is ready.

        function    called with one array for each input, by its name; returns an array, a tuple in the
                    order of the outputs, or a dict. `async def` runs on the server's loop. One that
                    yields makes a decoupled model: each yield is an answer. Of a list each is an instance
        inputs, outputs   name → (datatype, shape), such as {"x": ("FP32", [16])}; without the dimension
                    of rows where it batches. An input whose parameter has a default is optional
        example     arrays to call the function with now, once, on this thread: they tell what inputs and
                    outputs are, where those are not given
        batching    whether the rows of several requests are put together, at most max_batch_size (64) of
                    them; a batch waits up to max_queue_delay_microseconds to be filled
        instances   how many executions may run side by side
        placement   "thread": each instance has its own; "inline": on the server's loop, for some tens of
                    microseconds; "auto": as its times say
        requests    whether the function also gets `requests`, the list of core.InferenceRequest
        config      more of the model's configuration, by the names of config.pbtxt
        memory      "device": arrays on devices come as they are; else inputs are numpy. What it returns may
                    be on a device in any case
        A name that is bound already gets the new function; requests that were accepted finish with the
        old one. Raises CoreError when it cannot be a model; what was bound stays.
        """
        self._call(
            lambda: self._running.bind(
                bound(
                    name,
                    function,
                    inputs=inputs,
                    outputs=outputs,
                    example=example,
                    batching=batching,
                    max_batch_size=max_batch_size,
                    max_queue_delay_microseconds=max_queue_delay_microseconds,
                    preferred_batch_size=preferred_batch_size,
                    instances=instances,
                    placement=placement,
                    requests=requests,
                    config=config,
                    memory=memory,
                )
            )
        )

    def unbind(self, name: str) -> None:
        """Unload a function; accepted requests finish. Raises CoreError(NOT_FOUND) for an unknown one."""
        self._call(lambda: self._running.unbind(name))

    def serve(
        self,
        *,
        http_port: int | None = None,
        grpc_port: int | None = None,
        metrics_port: int | None = None,
        address: str = "127.0.0.1",
    ) -> dict[str, int]:
        """Let others ask this server too: the frontends whose port is given, or all; returns at once.

        Ports are 0 for any that is free; without one, those of the options count.
        address   to listen on; only this machine by default, "0.0.0.0" for everybody
        Returns frontend → port. Raises CoreError when one cannot listen. They close with the server.
        """
        ports = checked_ports({"http": http_port, "grpc": grpc_port, "metrics": metrics_port})
        return self._call(lambda: self._running.serve(ports, address))

    # ---------------------------------------------------------------------------

    def _opened(self) -> LoopThread:
        if (thread := self._thread) is None:
            raise unavailable(self._closed)
        return thread

    @property
    def _inner(self) -> Inner:
        return self._running.server

    def _opened_desk(self) -> Desk:
        if self._thread is None and inside.get() is not getattr(self, "_desk", self):
            raise unavailable(self._closed)
        return self._desk

    def _forked(self) -> None:
        """This process is a child of the server's."""
        thread, self._thread = self._thread, None
        self._closed = FORKED
        self._lock = threading.Lock()  # another thread may have held it
        if thread is not None:
            thread.abandon(FORKED)


_started: set[Server] = set()  # held, so that one which its program has lost ends well too


def _stop_all() -> None:
    """The interpreter ends."""
    for server in list(_started):
        server.stop()


def _forget_all() -> None:
    """A fork: here there are no threads of servers."""
    for server in list(_started):
        server._forked()
    _started.clear()


# Where Python has it, before it forbids new work to thread pools, which models need to end; that is before
# anything of atexit. concurrent.futures registers its own end in the same way.
getattr(threading, "_register_atexit", atexit.register)(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
