"""One server process: from its options to its end.

    options ─► plugins ─► InferenceServer ─► frontends open ─► models load ─► tables ─► signal ─► drain

It is the whole server, or with --workers=N one of several (core/fleet). A worker that replaces one that
has died opens its ports last: no connection meets it before it is as far as the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from core import heap, plugins, service_manager, unix_sockets
from core.backend import Backend
from core.errors import CoreError
from core.fleet.member import Member
from core.fleet.process import Settings
from core.fleet.tables import TablesOfWorker
from core.frontend import Frontend
from core.options import Options, check_server, parse, reads_again
from core.repository.agents.known import agents_in_use
from core.repository.private import leave_nothing
from core.server import InferenceServer
from core.telemetry import log, tables

logger = logging.getLogger("core")

YOUNG = 5000
"""Objects that are made before the garbage collector looks at the young ones.

Sixteen requests together are over 700, the interpreter's own number: it looked after each such batch, and
found nothing, for what is made for a request lies in no circle.
"""


def run(options: Options) -> int:
    """Serve until SIGINT or SIGTERM; the exit status."""
    return _run(serve(options))


def work(settings: str) -> int:
    """Serve as one of several workers; the exit status. The supervisor starts a process with it.

    settings   Settings.text; the arguments of the server are those of this process
    """
    mine = Settings.of(settings)
    for address, file in mine.listening.items():
        os.set_inheritable(file, False)  # not for the processes of models
        unix_sockets.inherited[address] = file
    changes: dict[str, Any] = {"reuse_http_port": True, "reuse_grpc_port": True, **mine.ports}
    plugins.load_hooks(quiet=True)
    added = plugins.added_flags()
    # What is deprecated the supervisor has said.
    options = replace(parse(sys.argv[1:], warn=lambda _: None, added=added), **changes)
    log.configure(options)
    return _run(_work(options, mine))


async def _work(options: Options, mine: Settings) -> int:
    end = socket.socket(fileno=mine.channel)
    end.set_inheritable(False)
    tables = TablesOfWorker(mine.tables, options.workers, mine.number - 1)
    member = await Member.of(end, mine.number, options.workers, mine.operation, tables)
    try:
        status = await serve(options, member, replacement=mine.replacement)
    finally:
        await member.close()
    return 1 if member.orphaned else status


async def serve(
    options: Options, member: Member | None = None, *, replacement: bool = False
) -> int:
    """Serve until SIGINT or SIGTERM, or until the supervisor says so; the exit status.

    member        this process among several workers
    replacement   whether the others serve already
    """
    end = _end_on_signals(member)
    try:
        check_server(options)
        plugins.load_hooks()
        server = InferenceServer(options, exchange=member)
        _read_again_on_signal(server, member)
        plugins.ask("core_server_starting", server=server)
    except CoreError as error:
        return _creation_failed(error, member)
    frontends: list[Frontend] = []
    failure: CoreError | None = None
    try:
        frontends = frontends_of(server)
        if not replacement:
            await _open(frontends)
        await _load(server, end, member, quiet=replacement)
        if member is not None and replacement:
            await _until_either(member.admitted, end)
            if not end.is_set():
                await _open(frontends)
                member.opened()
        if member is None and not end.is_set():
            service_manager.ready()
        await end.wait()
    except CoreError as error:
        failure = error
    if member is None:
        service_manager.stopping()
    if not await _stop(server, frontends, options.exit_timeout_secs):
        _leave_at_once(
            "failed to stop server: Internal - Exit timeout expired. Exiting immediately."
        )
    plugins.tell("core_server_stopping", server=server)
    return _creation_failed(failure, member) if failure else 0


def frontends_of(server: InferenceServer) -> list[Frontend]:
    """The frontends that the options ask for, by name, not started; no other one is imported."""
    wanted = [
        plugin
        for name, plugin in plugins.frontends().items()
        if getattr(server.options, f"allow_{name}", True)
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


async def _load(
    server: InferenceServer, end: asyncio.Event, member: Member | None, *, quiet: bool
) -> None:
    """Load the models and show the tables. Raises CoreError when the server cannot serve.

    quiet   shows no tables; of several workers the first shows them
    Returns before the models are loaded if the end comes first: stopping the server waits for them.
    """
    work = server.start() if member is None else member.starting(server.start())
    loading = asyncio.ensure_future(work)
    ending = asyncio.ensure_future(end.wait())
    await asyncio.wait((loading, ending), return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    if loading.done():
        if not quiet and (member is None or member.number == 1):
            _show_tables(server)
        loading.result()
        if member is not None:
            member.started()
    else:
        loading.add_done_callback(lambda task: task.cancelled() or task.exception())


async def _until_either(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()


async def _stop(server: InferenceServer, frontends: Sequence[Frontend], timeout_s: float) -> bool:
    """End frontends, then the server, within one time; whether everything ended."""
    deadline = time.monotonic() + timeout_s
    await asyncio.gather(*(frontend.stop(timeout_s) for frontend in frontends))
    return not await server.stop(max(0.0, deadline - time.monotonic()))


def _end_on_signals(member: Member | None) -> asyncio.Event:
    """An event that SIGINT or SIGTERM sets; the next of them ends the process at once.

    A worker is also ended by its supervisor, and only by it when somebody presses ^C: that reaches
    every process of a terminal.
    """
    end = asyncio.Event() if member is None else member.end
    loop = asyncio.get_running_loop()
    signals = [signal.SIGTERM] if member else [signal.SIGINT, signal.SIGTERM]
    if member:
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # blocked by who started it

    def received(number: int) -> None:
        end.set()
        for each in signals:
            loop.remove_signal_handler(each)
            # A handler of Python and not of the loop: it must work while the loop is blocked.
            signal.signal(each, lambda *_: _leave_at_once("Exiting immediately."))
        print(f"Signal ({number}) received.", flush=True)

    for each in signals:
        loop.add_signal_handler(each, received, int(each))
    return end


def _read_again_on_signal(server: InferenceServer, member: Member | None) -> None:
    """Call the listeners of `InferenceServer.on_reload` on SIGHUP.

    Without files to read again, SIGHUP ends the process.

    A service manager that listens may always ask for it.
    """
    if reads_again(server.options) or service_manager.listens():
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, _read_again, server, member)
    # Blocked by who started a worker: what came before is handled now.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])


def _read_again(server: InferenceServer, member: Member | None) -> None:
    with contextlib.nullcontext() if member else service_manager.reloading():
        server.reload()


def _leave_at_once(text: str) -> NoReturn:
    """End the process without waiting for threads; child processes see their pipes close."""
    print(text, file=sys.stderr, flush=True)
    logging.shutdown()
    leave_nothing()
    os._exit(1)


def _creation_failed(error: CoreError, member: Member | None) -> int:
    """Say why there is no server; a worker tells its supervisor, who says it once for all."""
    if member is not None:
        member.failed(error)
        return 1
    print(f"error: creating server: {error.kind.title} - {error.message}", file=sys.stderr)
    return 1


def _show_tables(server: InferenceServer) -> None:
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
    if backend.folder is not None:
        return str(backend.folder / backend.runtime)
    module = sys.modules.get(plugin.entries[0].module)
    return str(Path(getattr(module, "__file__", None) or ""))


def _run(service: Coroutine[Any, Any, int]) -> int:
    young, *older = gc.get_threshold()
    if 0 < young < YOUNG:  # 0 is a collector that somebody has switched off
        gc.set_threshold(YOUNG, *older)
    heap.keep()
    try:
        import uvloop
    except ImportError:  # not on Windows; asyncio's own loop does the same, slower
        return asyncio.run(service)
    return int(uvloop.run(service))
