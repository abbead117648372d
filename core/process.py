"""One server process: from its options to its end.

    options ─► plugins ─► InferenceServer ─► frontends open ─► models load ─► tables ─► signal ─► drain

A role says what else the process does: OnlyProcess is the whole server, a plugin may have several processes.
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
from pathlib import Path
from typing import Any, NoReturn

from core import heap, plugins, service_manager
from core.backend import Backend
from core.control import Exchange
from core.errors import CoreError
from core.frontend import Frontend
from core.options import Options, check_server, reads_again
from core.repository.agents.known import agents_in_use
from core.repository.private import leave_nothing
from core.server import InferenceServer
from core.telemetry import tables

logger = logging.getLogger("core")

YOUNG = 5000
"""Objects that are made before the garbage collector looks at the young ones.

Sixteen requests together are over 700, the interpreter's own number: it looked after each such batch, and
found nothing, for what is made for a request lies in no circle.
"""


class OnlyProcess:
    """The role of a process that is the whole server. A plugin inherits it for one process of several.

    end        set when the process shall end
    exchange   with the other processes; None without any
    signals    that end the process; the others are ignored
    last       whether frontends open only after the models are loaded and `admitted` has returned
    """

    exchange: Exchange | None = None
    signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGINT)
    last = False

    def __init__(self) -> None:
        self.end = asyncio.Event()

    async def load(self, work: Awaitable[None]) -> None:
        """Await the load of the models. Raises what it raises."""
        await work

    def loaded(self, server: InferenceServer) -> None:
        """Show what there is: the models are loaded, or could not be."""
        show_tables(server)

    async def admitted(self) -> None:
        """Wait until the frontends may open, with `last`."""

    def ready(self) -> None:
        """Announce that the server takes requests."""
        service_manager.ready()

    def stopping(self) -> None:
        """Announce that the server begins to end."""
        service_manager.stopping()

    def reloading(self) -> contextlib.AbstractContextManager[None]:
        """Enclose the reload of files."""
        return service_manager.reloading()

    def failed(self, error: CoreError) -> None:
        """Report that there is no server, or no more."""
        print(f"error: creating server: {error.kind.title} - {error.message}", file=sys.stderr)


def run(options: Options) -> int:
    """Serve until SIGINT or SIGTERM; return the exit status."""

    async def service() -> int:
        return await serve(options, OnlyProcess())

    return run_on_loop(service())


async def serve(options: Options, role: OnlyProcess) -> int:
    """Serve until a signal comes or the role says so; return the exit status."""
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
    """The frontends that the options ask for, by name, not started; no other one is imported."""
    wanted = [
        plugin
        for name, plugin in plugins.frontends().items()
        if server.options.value(f"allow_{name}", True)
    ]
    made = [plugin.load()(server) for plugin in wanted]
    return [frontend for frontend in made if frontend.enabled]


async def _open(frontends: Sequence[Frontend]) -> None:
    """Let all frontends listen. Raises the CoreError of one that cannot."""
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

    Returns before the models are loaded if the end comes first: stopping the server waits for them.
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
    """End frontends, then the server, within one time; whether everything ended."""
    deadline = time.monotonic() + timeout_s
    await asyncio.gather(*(frontend.stop(timeout_s) for frontend in frontends))
    return not await server.stop(max(0.0, deadline - time.monotonic()))


def _end_on_signals(role: OnlyProcess) -> None:
    """Let the signals of the role set `role.end`; the next of them ends the process at once.

    ^C reaches every process of a terminal: a process that another one ends ignores SIGINT.
    """
    loop = asyncio.get_running_loop()

    def received(number: int) -> None:
        role.end.set()
        for each in role.signals:
            loop.remove_signal_handler(each)
            # A handler of Python and not of the loop: it must work while the loop is blocked.
            signal.signal(each, lambda *_: _leave_at_once("Exiting immediately."))
        print(f"Signal ({number}) received.", flush=True)

    if signal.SIGINT not in role.signals:
        loop.add_signal_handler(signal.SIGINT, lambda: None)
    for each in role.signals:
        loop.add_signal_handler(each, received, int(each))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # the starting process may block it


def _reload_on_signal(server: InferenceServer, role: OnlyProcess) -> None:
    """Call the listeners of `InferenceServer.on_reload` on SIGHUP.

    Without files to read again, SIGHUP ends the process. A service manager that listens may always send it.
    """

    def reload() -> None:
        with role.reloading():
            server.reload()

    if reads_again(server.options) or service_manager.listens():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)
    # The starting process may block it: what came before is handled now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])


def _leave_at_once(text: str) -> NoReturn:
    """End the process without waiting for threads; child processes see their pipes close."""
    print(text, file=sys.stderr, flush=True)
    logging.shutdown()
    leave_nothing()
    os._exit(1)


def show_tables(server: InferenceServer) -> None:
    """Print what the server consists of, and the models with their state."""
    identity = server.metadata()
    complete = not server.options.disable_auto_complete_config
    defaults = {"auto-complete-config": str(complete).lower(), "default-max-batch-size": "4"}
    tables.show(
        server.options,
        [
            ("server_id", identity["name"]),
            ("server_version", identity["version"]),
            ("server_extensions", " ".join(identity["extensions"])),
        ],
        agents_in_use(),
        [
            (name, _file_of(plugin, found), {**defaults, **found.config})
            for name, (plugin, found) in sorted(plugins.imported().items())
        ],
        server.manager.table(),
    )


def _file_of(plugin: plugins.Plugin, backend: Backend) -> str:
    if (file := plugins.file_of(backend)) is not None:
        return str(file)
    module = sys.modules.get(plugin.entries[0].module)
    return str(Path(getattr(module, "__file__", None) or ""))


def run_on_loop(service: Coroutine[Any, Any, int]) -> int:
    """Run a coroutine on the event loop of this process, and return its result."""
    young, *older = gc.get_threshold()
    if 0 < young < YOUNG:  # 0 is a collector that somebody has switched off
        gc.set_threshold(YOUNG, *older)
    heap.keep()
    try:
        import uvloop
    except ImportError:  # not on Windows; asyncio's own loop does the same, slower
        return asyncio.run(service)
    return int(uvloop.run(service))
