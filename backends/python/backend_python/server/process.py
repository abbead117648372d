"""The server's side of a child process: start it, exchange messages while it loads, end it.

These functions block: call them from a worker thread. `connection.py` takes over on the event loop when the
model is initialized.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import select
import signal
import socket
import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from backend_python import arena, protocol, system
from backend_python.protocol import Frame
from backend_python.server.calls import Calls, replied
from backend_python.server.control import OPERATIONS, ModelControl
from backend_python.server.errors import unhealthy
from backend_python.server.printed import Printed
from backend_python.server.settings import Settings
from backend_python.server.shared import SharedWorker
from backend_python.server.template import Ended, SharedTemplate, template
from core.errors import Kind, unavailable

if TYPE_CHECKING:
    from backend_python.server.lending import Lending

logger = logging.getLogger("core")

LEVELS = {0: logging.INFO, 1: logging.WARNING, 2: logging.ERROR, 3: logging.DEBUG}
Origin = SharedTemplate | SharedWorker

_SOON_S = 0.2
EXIT_S = 5.0  # limit from the end of finalize, or from SIGKILL, to the end of the process
_SEND_BUFFER = 1 << 18


class Died(Exception):
    """The child has ended, or closed its end of the channel."""


class Process:
    """One child with its channel and its two arenas.

    name       of the instance, for the log and for errors
    origin     the template from which it is forked, or the worker that adds the instance
    sock       the server's end of the channel
    inputs     the arena that requests are written to
    outputs    the arena that answers are read from
    calls      handles the calls of the model to the server
    write      sends a message; the Outbox replaces it while the event loop has the channel
    unsent     bytes that the connection could not send before it gave the channel back
    lending    lends tensors on GPUs; None if there are no GPUs
    pid        of the process
    pidfd      readable when the process has ended, also if another process still holds the channel
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        control: ModelControl | None = None,
        origin: Origin = template,
    ):
        self.name = name
        self._settings = settings
        self._control = control
        self._writing = threading.Lock()  # for write_now: the event loop may send a REPLY
        self.write = self.write_now
        self.unsent = b""
        self._answers: deque[Frame] = deque()
        request_fd = system.create_memory("requests", _pages(settings.arena_bytes))
        response_fd = system.create_memory("responses", _pages(settings.arena_bytes))
        self._fds: tuple[int, ...] = (request_fd, response_fd)
        self.sock, theirs = socket.socketpair()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self._printed = Printed(name)
        try:
            with theirs:
                fds = (theirs.fileno(), request_fd, response_fd, *self._printed.fds)
                self._child = origin.fork(fds, settings.timeout_s)
        except BaseException:
            self._printed.abandon()
            self.sock.close()
            protocol.close_fds(*self._fds)
            raise
        self._printed.begin()
        self.pid, self.pidfd = self._child.pid, self._child.pidfd
        self.reader = protocol.reader(self.sock)
        self.calls = Calls()
        self.inputs = arena.Sender(request_fd, settings.growth_bytes)
        self.outputs = arena.Receiver(response_fd, writable=False)
        self.lending: Lending | None = None

    def ask(self, kind: int, question: Any, answer: int, timeout_s: float | None) -> dict[str, Any]:
        """Send a message, wait for its answer, and return the JSON of the answer.

        Raise Died if the child ends first, TimeoutError if the answer takes longer than `timeout_s` seconds.
        """
        try:
            self.write_now(protocol.frame(kind, 0, protocol.to_json(question)))
        except OSError:
            raise Died from None
        found: dict[str, Any] = json.loads(self._wait(answer, timeout_s).content)
        return found

    def wait_ready(self) -> None:
        """Wait until the child runs. Raise Died, or TimeoutError after stub-timeout-seconds."""
        self._wait(protocol.READY, self._settings.timeout_s)

    def finalize(self) -> None:
        """Let the model finalize, within stub-timeout-seconds, and wait for the end of the process.

        If either takes too long, log a warning and end the process as `kill` does.
        """
        if self.lending is not None:
            self._get_back(self.lending)
        try:
            answer = self.ask(protocol.FINALIZE, {}, protocol.FINALIZED, self._settings.timeout_s)
            if "error" in answer:
                logger.error("finalize of '%s' failed: %s", self.name, answer["error"])
            self._child.wait(EXIT_S)
        except Died:
            pass
        except TimeoutError:
            logger.warning("'%s' does not end; %s", self.name, self._child.leaving)
        self.kill()

    def _get_back(self, lending: Lending) -> None:
        """Wait until all tensors in the child's GPU memory are returned, because that ends with the child.

        Log a warning and go on if that takes too long.
        """
        if lending.borrower.wait_returned(_SOON_S):
            return
        gc.collect()  # unreachable answers may be in reference cycles
        if not lending.borrower.wait_returned(EXIT_S):
            logger.warning("'%s' ends while others hold tensors in its GPU memory", self.name)

    def kill(self) -> None:
        """End the process at once and close everything. A second call does nothing.

        A worker is not ended: only this instance ends, after its current work.
        """
        if not self._fds:
            return
        self._child.leave()
        self._child.wait()
        self.close()

    def kill_soon(self, why: str) -> None:
        """Kill the process; a worker ends with all its models. Call `close` when pidfd becomes readable.

        why   the reason, for the log of each model; "" if the process seems to have ended by itself
        """
        self._child.kill(why)

    def give_up(self) -> None:
        """End a child that is not needed any more: `ask` and `wait_ready` raise Died. Thread-safe."""
        self._child.leave()
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Reap the process, which has ended, and close everything. A second call does nothing."""
        if not self._fds:
            return
        self._child.wait()
        self._printed.close()
        if self.lending is not None:
            self.lending.close()
        self.calls.close()
        self.sock.close()
        self.inputs.close()
        self.outputs.close()
        protocol.close_fds(*self._fds)
        self._child.close()
        self._fds = ()

    @property
    def ending(self) -> str:
        """How the process ended, in words: the signal or the exit status, if it is known."""
        with contextlib.suppress(TimeoutError):
            self._child.wait(0)
        status = self._child.status
        if status is None:
            return "nobody knows how"
        return _signal(-status, self._child.killed) if status < 0 else f"exit status {status}"

    def log(self, frame: Frame) -> None:
        """Write a LOG frame to the server's log."""
        write_log(*orjson.loads(frame.content))

    def _wait(self, kind: int, timeout_s: float | None) -> Frame:
        """Return the next frame of a kind. Handle LOG, CALL and INFER before it, and ignore other frames.

        Raise Died if the child ends first, TimeoutError after `timeout_s` seconds.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            while (frame := self.reader.next()) is not None:
                self.inputs.free(frame.released)
                if frame.kind == protocol.LOG:
                    self.log(frame)
                elif frame.kind == protocol.CALL:
                    self.answer(frame)
                elif frame.kind == protocol.INFER:
                    self._refuse(frame)
                elif frame.kind == kind:
                    return frame
            self._receive(end)

    def answer(self, call: Frame) -> None:
        """Send the REPLY to a CALL: now, or when the server has completed the operation."""
        # Not orjson: a model may set a metric to NaN.
        operation, arguments, dropped = content = json.loads(call.content)
        if self._control is not None and operation in OPERATIONS:
            self.calls.drop(dropped)
            self._control.start(operation, arguments, partial(self._reply_later, call.number))
        else:
            self._reply(call.number, replied(self.calls, content))

    def _reply(self, number: int, content: dict[str, Any]) -> None:
        self.write(protocol.frame(protocol.REPLY, number, protocol.to_json(content)))

    def _reply_later(self, number: int, content: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the child has died: its next use reports that
            self._reply(number, content)

    def _refuse(self, call: Frame) -> None:
        """Refuse a call of another model: a model that is being finalized may not make any."""
        fixed = protocol.ANSWER.pack(0, 0, 0, protocol.FINAL)
        answer = [[], [Kind.CANCELLED.value, "the model is being finalized"], ""]
        content = fixed + protocol.to_json([answer])
        self.write(protocol.frame(protocol.INFERRED, call.number, content))

    def write_now(self, message: bytes) -> None:
        """Send a message and wait until it is sent. Raise OSError if the child has died."""
        with self._writing:
            message, self.unsent = self.unsent + message, b""
            self.sock.sendall(message)

    def _receive(self, end: float | None) -> None:
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        poll.register(self.pidfd, select.POLLIN)
        left = None if end is None else max(0.0, end - time.monotonic())
        ready = poll.poll(None if left is None else left * 1000)
        if not ready:
            raise TimeoutError
        if not any(fd == self.sock.fileno() for fd, _ in ready):
            raise Died
        try:
            if not self.reader.receive():
                raise Died
        except OSError:
            raise Died from None


def start(
    name: str,
    settings: Settings,
    control: ModelControl | None = None,
    origin: Origin = template,
) -> Process:
    """Start a child, and return it when it runs and waits for its first message.

    Raise CoreError if it ends or takes longer than stub-timeout-seconds.

    control   handles its model's operations on other models; None if it may not use any
    origin    the template from which it is forked, or the worker that adds the instance
    """
    try:
        process = Process(name, settings, control, origin)
        try:
            process.wait_ready()
        except BaseException:
            process.kill()
            raise
    except (Ended, Died):
        raise unhealthy(name) from None
    except TimeoutError:
        raise unavailable(
            f"Stub process '{name}' did not start within {settings.timeout_s} "
            "seconds; --backend-config=python,stub-timeout-seconds=N allows more"
        ) from None
    return process


def _signal(number: int, why: str) -> str:
    """Return the description of a signal that ended a process. `why` is the reason if the server sent it."""
    try:
        name = signal.Signals(number).name
    except ValueError:  # one of those without a name
        return f"signal {number}"
    hint = ""
    if name == "SIGKILL":
        hint = f" of the server: {why}" if why else ", as the system does when memory runs out"
    return f"signal {number}, {name}{hint}"


def write_log(level: int, file: str, line: int, text: str, traceback: str = "") -> None:
    """Write a line of a model to the server's log, with the model's file and line as its origin."""
    number = LEVELS.get(level, logging.INFO)
    if logger.isEnabledFor(number):
        record = logger.makeRecord("core", number, file, line, "%s", (text,), None)
        record.exc_text = str(traceback) or None
        logger.handle(record)


def _pages(size: int) -> int:
    return max(1 << 16, size + -size % (1 << 12))
