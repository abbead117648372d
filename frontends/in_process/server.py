"""Server: a model server inside a Python program; programs use it as core.Server.

    with core.Server(model_repository="models/") as server:
        array = server.infer("m", {"x": array})["y"]

[Server] ─► CallQueue ─► loop thread ─► InferenceServer. The whole server runs on one separate thread. Call
the methods of Server from any other thread, unless their docstring says otherwise.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from core.errors import unavailable
from core.request import InferenceRequest
from core.telemetry import log
from frontends.in_process.control import ControlMethods
from frontends.in_process.functions.binding import FunctionSettings, bound_function
from frontends.in_process.functions.specs import Specs
from frontends.in_process.lifetime import ServerLifetime, checked_ports
from frontends.in_process.loop_thread import FORKED, STOPPED, LoopThread, would_deadlock
from frontends.in_process.options import options_of
from frontends.in_process.pending import (
    AsyncRequest,
    BlockingRequest,
    Dispatcher,
    current_dispatcher,
    set_deadline,
)
from frontends.in_process.streams import AsyncResponseStream, ResponseStream
from frontends.in_process.values import Inputs, RequestFields, Response, request_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

_NOT_STARTED = "the server is not started: call start(), or use it in a with block"


class Server(ControlMethods):
    """A server for the program that it runs in: models of repositories, and bound functions.

    options   every option of core-serve, with underscores instead of hyphens. model_repository may be
              one folder or several; a server of functions needs none
    Raises CoreError(INVALID) for an unknown option or an invalid value.

    The server starts with `start` (or a `with` or `async with` block). It stops with `stop` (or the end of
    the block), or when the interpreter exits, and cannot start again. In a forked child process, calls
    raise CoreError(UNAVAILABLE).
    """

    def __init__(self, **options: Any):
        self.options = options_of(options)
        self._logs = any(name.startswith("log_") for name in options)
        self._lock = threading.Lock()  # of start and stop
        self._thread = None
        self._closed = _NOT_STARTED
        self._ended = threading.Event()

    def start(self) -> Server:
        """Load the models that the control mode names. Return the server when they are ready.

        If an option begins with log_, configure the log of this process.

        Raises CoreError if a repository cannot be read or a model fails (with exit_on_error=False the
        other models are served); then the server is stopped. A second call does nothing. Raises
        CoreError(UNAVAILABLE) for a server that has stopped.
        """
        with self._lock:
            if self._thread is not None:
                return self
            if self._closed != _NOT_STARTED:
                raise unavailable(self._closed)
            if self._logs:
                log.configure(self.options)
            thread = LoopThread("core-server")
            self._dispatcher = Dispatcher(thread)
            self._lifetime = ServerLifetime(self.options, self._dispatcher)
            try:
                thread.run(self._lifetime.start())
            except BaseException:
                self._closed = STOPPED
                self._ended.set()
                self._end(thread, 0.0)
                raise
            self._thread = thread
            _started.add(self)
        return self

    def stop(self, timeout: float | None = None) -> None:
        """Refuse new requests, finish the accepted ones, unload all models, end the thread.

        timeout   seconds, by default exit_timeout_secs; the requests that remain then get
                  CoreError(UNAVAILABLE)
        Errors of models are not raised. A second call does nothing. Raises CoreError(INVALID) on the
        server's own thread.
        """
        with self._lock:
            if (thread := self._thread) is None:
                return
            if thread.is_current:
                raise would_deadlock("stop")
            self._thread, self._closed = None, STOPPED
            try:
                self._end(thread, self.options.exit_timeout_secs if timeout is None else timeout)
            finally:
                _started.discard(self)
                self._ended.set()

    def _end(self, thread: LoopThread, timeout_s: float) -> None:
        complete = False
        try:
            complete = thread.run(self._lifetime.stop(timeout_s))
        finally:  # also after a second ^C
            thread.end(complete=complete)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    async def __aenter__(self) -> Server:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self.stop)

    def wait(self, timeout: float | None = None) -> bool:
        """Block until another thread calls `stop`. For a program that only serves; ^C is KeyboardInterrupt.

        Return whether the server has stopped within `timeout` seconds.
        """
        return self._ended.wait(timeout)

    def infer(
        self,
        model: str,
        inputs: Inputs,
        *,
        timeout: float | None = None,
        **fields: Unpack[RequestFields],
    ) -> Response:
        """Send a request to a model and return its only response.

        inputs    name → numpy array, array with __dlpack__ (also on a device), or list of str or bytes.
                  If the model batches, the first dimension is the rows. Inputs are not copied: do not
                  change them before the response arrives
        timeout   seconds; then Timeout is raised and the request is cancelled
        fields    see RequestFields
        Raises the CoreError of the model or the server. KeyboardInterrupt cancels the request. Requests
        of several threads share batches.
        """
        return BlockingRequest(*self._request(model, inputs, timeout, fields)).wait(timeout)

    async def infer_async(
        self,
        model: str,
        inputs: Inputs,
        *,
        timeout: float | None = None,
        **fields: Unpack[RequestFields],
    ) -> Response:
        """Like `infer`, for a coroutine on any loop. Cancelling its task cancels the request."""
        return await AsyncRequest(*self._request(model, inputs, timeout, fields)).wait(timeout)

    def stream(
        self,
        model: str,
        inputs: Inputs,
        *,
        timeout: float | None = None,
        **fields: Unpack[RequestFields],
    ) -> ResponseStream:
        """Send a request to a model and iterate over its responses, any number of them.

        timeout   seconds until the last response
        The model waits for a slow reader. A reader that takes nothing for a minute while the model waits
        gets an error in place of the rest. The first `next` raises the error of a refused request.
        """
        return ResponseStream(*self._request(model, inputs, timeout, fields), timeout)

    def stream_async(
        self,
        model: str,
        inputs: Inputs,
        *,
        timeout: float | None = None,
        **fields: Unpack[RequestFields],
    ) -> AsyncResponseStream:
        """Like `stream`, for `async for`. Call it on the event loop that reads the stream."""
        return AsyncResponseStream(*self._request(model, inputs, timeout, fields), timeout)

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
        """Serve a function as a model, here and over every frontend. Return when it is ready.

        function    takes one array for each input, by name; returns an array, a tuple in the order of the
                    outputs, or a dict. `async def` runs on the server's loop. A generator makes a
                    decoupled model: each yield is a response. A list has one function for each instance
        inputs, outputs   name → (datatype, shape), such as {"x": ("FP32", [16])}. With batching, the shape
                    does not include the rows. An input whose parameter has a default is optional
        example     arrays for one call of the function now, on this thread. They define the inputs and
                    outputs that are not given
        batching    whether the rows of several requests form a batch, at most max_batch_size (64) rows; a
                    batch waits up to max_queue_delay_microseconds to be filled
        instances   number of parallel executions
        placement   "thread": each instance has its own thread; "inline": on the server's loop, for some
                    tens of microseconds of work; "auto": chosen by measured time
        requests    whether the function also gets `requests`, the list of core.InferenceRequest
        config      further settings of the model, by the names of config.pbtxt
        memory      "device": inputs on devices stay there; "host": inputs are numpy. The function may
                    return arrays on a device in both cases
        If the name is bound already, the new function replaces the old one, which finishes its accepted
        requests. Raises CoreError if the function cannot be a model; then the old one stays.
        """
        settings = FunctionSettings(
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
        self._run(lambda: self._lifetime.bind(bound_function(name, function, settings)))

    def unbind(self, name: str) -> None:
        """Unload a function. Returns when it refuses new requests; accepted requests finish later.

        Raises CoreError(NOT_FOUND) for an unknown name.
        """
        self._run(lambda: self._lifetime.unbind(name))

    def serve(
        self,
        *,
        http_port: int | None = None,
        grpc_port: int | None = None,
        metrics_port: int | None = None,
        address: str = "127.0.0.1",
    ) -> dict[str, int]:
        """Open the frontends whose ports are given, or all. Return frontend → port at once.

        Port 0 takes any free port. If no port is given, the options define the ports.
        address   to listen on: by default only this machine, "0.0.0.0" for all networks
        Raises CoreError if a frontend cannot listen or is open already; then this call leaves none open.
        The frontends close with the server.
        """
        ports = checked_ports({"http": http_port, "grpc": grpc_port, "metrics": metrics_port})
        return self._run(lambda: self._lifetime.serve(ports, address))

    def _request(
        self, model: str, inputs: Inputs, timeout_s: float | None, fields: RequestFields
    ) -> tuple[Dispatcher, InferenceRequest]:
        """Return the Dispatcher of this server and a new request. Its timeout, if any, begins now.

        Raises CoreError: UNAVAILABLE if the server does not run, INVALID for an invalid argument.
        """
        own: Dispatcher | None = getattr(self, "_dispatcher", None)
        if own is None or (self._thread is None and current_dispatcher.get() is not own):
            raise unavailable(self._closed)
        request = request_of(model, inputs, **fields)
        if timeout_s is not None:
            set_deadline(request, timeout_s)
        return own, request

    def _abandon(self) -> None:
        """Refuse all calls: this process is a forked child of the server's process."""
        thread, self._thread = self._thread, None
        self._closed = FORKED
        self._lock = threading.Lock()  # another thread may have held it
        if thread is not None:
            thread.abandon(FORKED)


# A reference to each, so that a server without other references stops too.
_started: set[Server] = set()


def _stop_all() -> None:
    """Stop every server when the interpreter exits."""
    for server in list(_started):
        server.stop()


def _abandon_all() -> None:
    """Abandon every started server after a fork: the child process has no thread of a server."""
    for server in list(_started):
        server._abandon()
    _started.clear()


# Models need thread pools to stop. Python runs these functions before it closes the pools, and the functions
# of atexit after that. concurrent.futures registers its own end in the same way.
getattr(threading, "_register_atexit", atexit.register)(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
