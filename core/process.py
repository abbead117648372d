"""One server process: from its options to its end.

    options ─► plugins ─► InferenceServer ─► frontends open ─► models load ─► tables ─► signal ─► drain

A role defines the steps that differ between processes: OnlyProcess is the role of the only process of a
server. A plugin that serves with several processes has its own roles.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, NoReturn

from core import plugins
from core.control import Exchange
from core.errors import CoreError
from core.frontend import Frontend
from core.options import Options, check_server, reads_again
from core.repository.private import leave_nothing
from core.server import InferenceServer
from core.system import heap, service_manager

logger = logging.getLogger("core")

YOUNG = 20000
"""Threshold of the garbage collector's youngest generation, in allocated objects. 64 streams of a fast engine
have 15,000 between two turns of the event loop, in no reference cycle: a collection frees nothing.
"""


class OnlyProcess:
    """The role of a process that is the whole server. A plugin inherits it for one process of several.

    end        set this event to end the process
    exchange   connection to the other processes; None if this is the only one
    signals    signals that end the process; without SIGINT, the process ignores SIGINT
    last       whether frontends open only after the models are loaded and `admitted` has returned
    """

    exchange: Exchange | None = None
    signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGINT)
    last = False

    def __init__(self) -> None:
        self.end = asyncio.Event()

    async def load(self, work: Awaitable[None]) -> None:
        """Await the load of the models. Raises the errors of the load."""
        await work

    def loaded(self, server: InferenceServer) -> None:
        """Report that the models are loaded, or have failed."""
        plugins.tell("core_models_loaded", server=server)

    async def admitted(self) -> None:
        """Wait until the frontends may open. Called only if `last` is True."""

    def ready(self) -> None:
        """Announce that the server is ready for requests."""
        service_manager.ready()

    def stopping(self) -> None:
        """Announce that the server begins to stop."""
        service_manager.stopping()

    def signalled(self, number: int) -> None:
        """Print that a signal ends the server."""
        print(f"Signal ({number}) received.", flush=True)

    def reloading(self) -> contextlib.AbstractContextManager[None]:
        """Return a context for the reload of files: it notifies the service manager."""
        return service_manager.reloading()

    def failed(self, error: CoreError) -> None:
        """Print on stderr why the server could not start, or has failed."""
        print(f"error: creating server: {error.kind.title} - {error.message}", file=sys.stderr)


def run(options: Options) -> int:
    """Serve until SIGINT or SIGTERM; return the exit status."""
    return run_on_loop(serve(options, OnlyProcess()))


async def serve(options: Options, role: OnlyProcess) -> int:
    """Serve until a signal comes or the role sets `end`; return 0, or 1 after a CoreError, which it prints.

    If requests or loads outlast --exit-timeout-secs, end the whole process at once with status 1.
    """
    _end_on_signals(role)
    try:
        check_server(options)
        plugins.load_hooks()
        server = InferenceServer(options, exchange=role.exchange)
        _reload_on_signal(server, role)
        plugins.ask("core_server_starting", server=server)
    except CoreError as error:
        role.failed(error)
        return 1
    frontends: list[Frontend] = []
    failure: CoreError | None = None
    try:
        frontends = frontends_of(server)
        if not role.last:
            await _open(frontends)
        await _load(server, role)
        if role.last:
            await _until_either(role.admitted(), role.end.wait())
            if not role.end.is_set():
                await _open(frontends)
        if not role.end.is_set():
            role.ready()
            await heap.trim()  # what the start has freed
        await role.end.wait()
    except CoreError as error:
        failure = error
    role.stopping()
    if not await _stop(server, frontends, options.exit_timeout_secs):
        _leave_at_once(
            "failed to stop server: Internal - Exit timeout expired. Exiting immediately."
        )
    plugins.tell("core_server_stopping", server=server)
    if failure is not None:
        role.failed(failure)
    return 1 if failure is not None else 0


def frontends_of(server: InferenceServer) -> list[Frontend]:
    """Return the enabled frontends, not started. Do not import a frontend with --allow-NAME=false."""
    wanted = [
        plugin
        for name, plugin in plugins.frontends().items()
        if server.options.value(f"allow_{name}", True)
    ]
    made = [plugin.load()(server) for plugin in wanted]
    return [frontend for frontend in made if frontend.enabled]


async def _open(frontends: Sequence[Frontend]) -> None:
    """Start the frontends in their order. Log and raise the CoreError of the first that cannot listen."""
    for frontend in frontends:
        try:
            await frontend.start()
        except CoreError as error:
            logger.error(
                "failed to start %s service: %s - %s",
                frontend.name,
                error.kind.title,
                error.message,
            )
            raise


async def _load(server: InferenceServer, role: OnlyProcess) -> None:
    """Load the models. Raises CoreError if the server cannot serve.

    If `role.end` is set first, return before the models are loaded: stopping the server waits for the load.
    """
    loading = asyncio.ensure_future(role.load(server.start()))
    ending = asyncio.ensure_future(role.end.wait())
    await asyncio.wait((loading, ending), return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    if loading.done():
        role.loaded(server)
        loading.result()
    else:
        loading.add_done_callback(lambda task: task.cancelled() or task.exception())


async def _until_either(*waits: Coroutine[Any, Any, Any]) -> None:
    waiting = [asyncio.ensure_future(each) for each in waits]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()


async def _stop(server: InferenceServer, frontends: Sequence[Frontend], timeout_s: float) -> bool:
    """Stop frontends, then the server, within `timeout_s`; return whether all models and loads have ended."""
    deadline = time.monotonic() + timeout_s
    await asyncio.gather(*(frontend.stop(timeout_s) for frontend in frontends))
    return not await server.stop(max(0.0, deadline - time.monotonic()))


def _end_on_signals(role: OnlyProcess) -> None:
    """Let the first signal of the role set `role.end`; the next one ends the process at once.

    ^C reaches every process of a terminal. A process that its parent ends ignores it: its role lacks SIGINT.
    """
    loop = asyncio.get_running_loop()

    def received(number: int) -> None:
        role.end.set()
        for each in role.signals:
            loop.remove_signal_handler(each)
            # A Python handler, not one of the loop: it must run while the loop is blocked.
            signal.signal(each, lambda *_: _leave_at_once("Exiting immediately."))
        role.signalled(number)

    if signal.SIGINT not in role.signals:
        loop.add_signal_handler(signal.SIGINT, lambda: None)
    for each in role.signals:
        loop.add_signal_handler(each, received, int(each))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # the starting process may block it


def _reload_on_signal(server: InferenceServer, role: OnlyProcess) -> None:
    """Call the listeners of `InferenceServer.on_reload` on SIGHUP.

    If there are no files to read again and no service manager listens, SIGHUP keeps its default: it ends the
    process.
    """

    def reload() -> None:
        with role.reloading():
            server.reload()

    if reads_again(server.options) or service_manager.listens():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)
    # The starting process may block it: a signal that came before is handled now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])


def _leave_at_once(text: str) -> NoReturn:
    """Print `text` and end the process with status 1, without waiting for threads or child processes."""
    print(text, file=sys.stderr, flush=True)
    logging.shutdown()
    leave_nothing()
    os._exit(1)


def run_on_loop(service: Coroutine[Any, Any, int]) -> int:
    """Set up garbage collector and heap, run a coroutine on a new event loop, and return its result."""
    young, *older = gc.get_threshold()
    if 0 < young < YOUNG:  # 0: the collector is switched off
        gc.set_threshold(YOUNG, *older)
    heap.keep()
    try:
        import uvloop
    except ImportError:  # not available on Windows; asyncio's loop works, but slower
        return asyncio.run(service)
    return int(uvloop.run(service))
