"""Main loop of a child, in a fork of the template.

It imports only numpy, the contents of compiled.py, and as little as possible of the standard library: every
import costs memory on each server with a Python model. All modules that a child imports run on Python 3.9
and later, whatever version the server runs on.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from backend_python import adapters, arena, protocol, runner, system
from backend_python.api import host as api_host
from backend_python.api.logger import LogLevel
from backend_python.api.request import InferenceRequest
from backend_python.child import messages
from backend_python.child.connection import Connection
from backend_python.child.host import ChildHost
from backend_python.child.outgoing import Closed
from backend_python.protocol import Frame

if TYPE_CHECKING:
    from backend_python.child.lent import Lending

_FAREWELL_S = 5.0  # time limit of finalize after the server has ended
# A tenth of the machine's memory: the system kills a model rather than the server, which can restart it.
_OOM_SCORE = 100


class Child:
    """The model and its channel.

    Not thread-safe, unless stated otherwise: use it from the main thread only, or in a worker from its own
    thread only.

    printed   file descriptors of the model's standard output and error
    """

    def __init__(
        self, sock: socket.socket, inputs: int, outputs: int, printed: tuple[int, int] = (1, 2)
    ):
        self._in = arena.Receiver(inputs, writable=True)
        self._out = arena.Sender(outputs)
        self.connection = self._connection = Connection(sock, self._in, self._out)
        self.host = self._host = ChildHost(self._connection)
        self._printed = printed
        self._runner: runner.ModelRunner | None = None
        self._decoder: messages.RequestDecoder
        self._decoupled = False
        self._name = ""  # of the instance
        self.module = ""  # module name of the model's file

    def serve(self) -> None:
        """Answer messages until FINALIZE, or until the channel closes; then let the model finalize."""
        self._connection.send(protocol.READY)
        try:
            while self._handle(self._connection.next_work()):
                pass
        except Closed:
            print_to_nobody(*self._printed)
            self._finalize()

    def _handle(self, frame: Frame) -> bool:
        if frame.kind == protocol.EXECUTE:
            self._execute(frame)
        elif frame.kind == protocol.ASK:
            self._tell_readiness(frame)
        elif frame.kind == protocol.INITIALIZE:
            self._answer(protocol.INITIALIZED, self._initialize, frame)
            self._host.serving = self._runner is not None  # the server accepts INFER from now on
        elif frame.kind == protocol.COMPLETE:
            self._answer(protocol.COMPLETED, self._complete, frame)
        elif frame.kind == protocol.FINALIZE:
            error = self._finalize()
            answer = {} if error is None else {"error": runner.described(error)}
            self._connection.send(protocol.FINALIZED, 0, protocol.to_json(answer))
            return False
        return True

    def _answer(self, kind: int, work: Any, frame: Frame) -> None:
        try:
            answer = work(json.loads(frame.content))
        except BaseException as error:  # SystemExit too: the load has failed
            answer = {"error": runner.described(error)}
        self._connection.send(kind, 0, protocol.to_json(answer))

    def _initialize(self, what: dict[str, Any]) -> dict[str, Any]:
        self._decoupled = what["decoupled"]
        self._host.model_directory = what["directory"]
        self._host.backend_settings = what["settings"]
        self.module = what["module"]
        adapters.add(what["adapters"])
        if what["checks_outputs"]:
            self._host.encoder.declared = frozenset(what["outputs"])
        lending = self._lending(what["gpus"]) if what.get("gpus") else None
        self._decoder = messages.RequestDecoder(
            self._host, self._in, what["outputs"], self._decoupled, lending
        )
        model = runner.ModelRunner(what["file"], what["module"], what["directory"], self._decoupled)
        model.initialize(what["arguments"])
        self._runner = model
        self._name = what["arguments"]["model_instance_name"]
        self._host.calls_models = what["calls_models"]
        answer: dict[str, Any] = {"tells_readiness": model.tells_readiness}
        if lending is not None and what["takes_gpu"]:
            answer["gpus"] = lending.gpus()
        return answer

    def _lending(self, gpus: list[str]) -> Lending:
        """Make and return this child's Lending, and give it to the encoder and the connection.

        gpus   UUIDs of the server's GPUs, in hexadecimal
        """
        from backend_python.child.lent import Lending  # ctypes: only where there are GPUs

        connection = self._connection
        lending = Lending(self._host, self._in, self._out, gpus, connection.let_go)
        self._host.encoder.lending = connection.lending = lending
        return lending

    def _complete(self, what: dict[str, Any]) -> dict[str, Any]:
        self._host.model_directory = what["directory"]
        self._host.backend_settings = what["settings"]
        adapters.add(what["adapters"])
        config = runner.complete(
            what["file"], what["module"], what["directory"], what["model"], what["config"]
        )
        return {"config": config}

    def _tell_readiness(self, frame: Frame) -> None:
        try:
            assert self._runner is not None
            answer: dict[str, Any] = {"value": self._runner.is_ready()}
        except Closed:
            raise
        except BaseException as error:
            answer = {"error": runner.described(error)}
        self._connection.send(protocol.TOLD, frame.number, protocol.to_json(answer))

    def _finalize(self) -> BaseException | None:
        model, self._runner = self._runner, None
        self._host.serving = False
        if model is not None:
            try:
                model.finalize()
            except BaseException as error:
                return error
        return None

    def _execute(self, frame: Frame) -> None:
        requests: list[InferenceRequest] = []
        self._connection.begin(frame.number)
        start = time.monotonic_ns()
        try:
            assert self._runner is not None
            requests = self._decoder.requests(frame)
            start = time.monotonic_ns()
            returned = self._runner.call(requests)
            if runner.is_coroutine(returned):
                returned = self._coroutine(frame.number, requests, returned)
            responses = self._runner.checked(requests, returned)
            end = time.monotonic_ns()
            parts = self._host.encoder.batch(requests, responses)
        except Closed:
            raise
        except BaseException as error:  # SystemExit too: it is the batch that failed
            self._failed(frame.number, start, error)
            return
        finally:
            # Delete the tensors that the model did not keep, so that EXECUTED releases their regions.
            self._connection.answering = True
            requests = returned = responses = []
            self._connection.answering = False

        times = protocol.TIMES.pack(start, end)
        hold = self._connection.may_hold(end)
        self._connection.send_tensors(protocol.EXECUTED, frame.number, times, parts, hold=hold)

    def _coroutine(self, batch: int, requests: list[InferenceRequest], coroutine: Any) -> Any:
        """Run an async execute to its end and return its value.

        For a decoupled model, start it on another thread and return None, so that later batches begin.
        """
        assert self._runner is not None
        if not self._decoupled:
            return self._runner.run(coroutine)

        def ended(error: BaseException | None) -> None:  # the loop's thread
            if error is not None:
                self._failed(batch, time.monotonic_ns(), error)

        for request in requests:
            request.get_response_sender()
        with api_host.Outer(batch):
            self._runner.start(coroutine, ended)
        return None

    def _failed(self, batch: int, start: int, error: BaseException) -> None:
        """Send the error of a batch to the server, which logs it and fails the open requests. Thread-safe."""
        if self._host.encoder.lending is not None:
            self._host.encoder.lending.forget(batch)
        entry = [LogLevel.ERROR, *runner.failure(error, self._name)]
        self._connection.send(protocol.LOG, 0, protocol.to_json(entry))
        text = runner.described(error).encode("utf-8", "replace")
        times = protocol.DONE.pack(0, 0, start, time.monotonic_ns())
        self._connection.send(protocol.FAILED, batch, times + text)


def main(channel: int, inputs: int, outputs: int) -> None:
    """Serve one instance over these file descriptors until FINALIZE, or until the server has ended.

    This function does not return: it ends the process.
    """
    begin(channel, inputs, outputs)
    sock = socket.socket(fileno=channel)
    child = Child(sock, inputs, outputs)
    api_host.set_process_host(child.host)
    threading.Thread(target=_end_after_server, args=(sock,), name="watch", daemon=True).start()
    with contextlib.suppress(Closed):
        child.serve()
    end()


def begin(*fds: int) -> None:
    """Set up a process that runs models. Call this first.

    fds   file descriptors that processes started by the models must not inherit
    """
    # Write no bytecode into a model's folder, and import no stale bytecode from it.
    sys.dont_write_bytecode = True
    _leave_ending_to_the_server()
    system.prefer_as_victim(_OOM_SCORE)
    draw_own_numbers()
    for fd in fds:
        os.set_inheritable(fd, False)
    sys.argv[:] = [""]
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)  # the log receives each line at once


def end() -> None:
    """Run the exit functions, flush the output and end the process. This function does not return."""
    # Not sys.exit: it waits for threads that a model left running.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def print_to_nobody(*fds: int) -> None:
    """Redirect file descriptors to /dev/null, so that printing is no error after the server has ended."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for fd in fds:
        os.dup2(nowhere, fd)
    os.close(nowhere)


def draw_own_numbers() -> None:
    """Seed numpy's random numbers again, so that forked children draw different ones.

    Only numpy 1 imports numpy.random in the template. The standard library reseeds itself after a fork.
    """
    if (numbers := sys.modules.get("numpy.random")) is not None:
        numbers.seed()


def _leave_ending_to_the_server() -> None:
    """Ignore SIGINT and SIGTERM: they reach the whole process group, and the server must drain first.

    The handler does nothing. SIG_IGN would be inherited by programs that the model starts. Processes that
    the model forks get the default handlers back.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    os.register_at_fork(after_in_child=_default_signals)


def _end_after_server(sock: socket.socket) -> None:
    """End the process five seconds after the server has ended, also while the model computes."""
    system.wait_for_server(sock)
    threading.Event().wait(_FAREWELL_S)
    os._exit(1)


def _default_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
