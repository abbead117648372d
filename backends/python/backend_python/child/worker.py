"""Main loop of a worker: a process that several instances share, EXECUTION_MODE shared.

The main thread accepts instances over CONTROL. Each instance is a `Child` on a thread of its own. Threads
that a model starts belong to its instance.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import socket
import sys
import threading
import time
import weakref
from contextvars import ContextVar, copy_context
from typing import Any

from backend_python import protocol
from backend_python.api import host as api_host
from backend_python.child import main as process
from backend_python.child.outgoing import Closed

_FAREWELL_S = 5.0  # time limit of the models' finalize after CONTROL has closed


def main(control: int) -> None:
    """Serve instances until the server closes CONTROL. This function does not return: it ends the process."""
    process.begin(control)
    sys.stdout, sys.stderr = _Printed(0, sys.stdout), _Printed(1, sys.stderr)
    _let_threads_belong_to_who_starts_them()
    threads = _serve(socket.socket(fileno=control))
    process.print_to_nobody(1, 2)
    last = time.monotonic() + _FAREWELL_S
    for thread in threads:
        thread.join(max(0.0, last - time.monotonic()))
        if thread.is_alive():
            os._exit(1)
    process.end()


def _serve(control: socket.socket) -> list[threading.Thread]:
    """Accept instances until the server closes CONTROL. Return the threads of those that still run."""
    threads: list[threading.Thread] = []
    while True:
        message, fds, _, _ = socket.recv_fds(control, 1, protocol.ASKED)
        threads = [thread for thread in threads if thread.is_alive()]
        if not message:
            return threads
        thread = threading.Thread(target=_run, args=tuple(fds), name="model", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # too many threads: the others continue, this one's channel closes
            protocol.close_fds(*fds)
            sys.excepthook(*sys.exc_info())
        else:
            threads.append(thread)


def _run(channel: int, inputs: int, outputs: int, out: int, err: int, ended: int) -> None:
    """Serve one instance from its first message to its last. Write to `ended` after its end."""
    for fd in (channel, inputs, outputs, out, err, ended):
        os.set_inheritable(fd, False)
    try:
        streams = _stream(out), _stream(err)
        _streams.set(streams)
        _serve_one(socket.socket(fileno=channel), inputs, outputs, (out, err))
        for stream in streams:
            with contextlib.suppress(OSError):  # its reader may be gone, so a flush can fail
                stream.close()
    except BaseException:  # an error of this package: end the worker, do not run without it
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    gc.collect()  # frees the memory of a model that is in a reference cycle
    with contextlib.suppress(BrokenPipeError):  # the server has closed its end
        # Closing the pipe is not enough: processes that the model forked may hold it, too.
        os.write(ended, b".")
    os.close(ended)


def _serve_one(sock: socket.socket, inputs: int, outputs: int, printed: tuple[int, int]) -> None:
    child = process.Child(sock, inputs, outputs, printed)
    # A thread that the model left running may still send: close the descriptors after the connection's end.
    weakref.finalize(child.connection, _close, sock, inputs, outputs)
    try:
        with api_host.running(child.host), contextlib.suppress(Closed):
            child.serve()
    finally:
        child.connection.close()
        sys.modules.pop(child.module, None)


def _close(sock: socket.socket, inputs: int, outputs: int) -> None:
    sock.close()
    protocol.close_fds(inputs, outputs)


def _stream(fd: int) -> io.TextIOWrapper:
    """Open a line-buffered text stream for the output of a model."""
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace")


_streams: ContextVar[tuple[Any, Any]] = ContextVar("streams")  # of the instance on this thread


class _Printed:
    """Standard output (0) or error (1) of the instance whose thread prints, else of the worker."""

    def __init__(self, number: int, own: Any):
        self._number = number
        self._own = own

    def __getattr__(self, name: str) -> Any:
        streams = _streams.get(None)
        return getattr(self._own if streams is None else streams[self._number], name)


def _let_threads_belong_to_who_starts_them() -> None:
    """Make every thread run in the context of its starter, where it finds its model's host and streams."""
    start = threading.Thread.start

    def start_in_context(thread: threading.Thread) -> None:
        context, run = copy_context(), thread.run
        context.run(api_host.running_outer.set, None)  # a pool's thread works for many batches

        def run_in_context() -> None:
            del thread.run  # breaks the reference cycle
            context.run(run)

        thread.run = run_in_context  # type: ignore[method-assign]
        start(thread)

    threading.Thread.start = start_in_context  # type: ignore[method-assign, assignment]
