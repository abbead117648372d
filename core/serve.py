"""python -m core.serve: from the command line to a server that has ended.

    flags ─► log ─► plugins ─► Server ─► frontends open ─► models load ─► tables ─► signal ─► drain

`core-serve` is the same as a program. Exit status: 0 after a signal and a complete drain, 1 otherwise.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, NoReturn

from core import plugins
from core.errors import CoreError
from core.frontend import Frontend
from core.options import HelpWanted, Options, UsageError, check_server, idle_flags, parse, usage
from core.server import Server
from core.telemetry import log, tables
from core.telemetry.metrics import SETTINGS

logger = logging.getLogger("core")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal comes; the exit status.

    arguments   of the command line, without the program; None: those of this process
    """
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
    except HelpWanted:
        print(usage(), file=sys.stderr)
        return 1
    except UsageError as error:
        print(usage(), error, sep="\n", file=sys.stderr)
        return 1
    log.configure(options)
    _say_what_is_idle(options)
    return _run(serve(options))


async def serve(options: Options) -> int:
    """Serve until SIGINT or SIGTERM; the exit status."""
    end = _end_on_signals()
    try:
        check_server(options)
        plugins.load_hooks()
        server = Server(options)
    except CoreError as error:
        return _creation_failed(error)
    plugins.hooks().hook.core_server_starting(server=server)
    frontends: list[Frontend] = []
    failure: CoreError | None = None
    try:
        frontends = frontends_of(server)
        await _open(frontends)
        await _load(server, end)
        await end.wait()
    except CoreError as error:
        failure = error
    if not await _stop(server, frontends, options.exit_timeout_secs):
        _leave_at_once(
            "failed to stop server: Internal - Exit timeout expired. Exiting immediately."
        )
    plugins.hooks().hook.core_server_stopping(server=server)
    return _creation_failed(failure) if failure else 0


def frontends_of(server: Server) -> list[Frontend]:
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


async def _load(server: Server, end: asyncio.Event) -> None:
    """Load the models and show the tables. Raises CoreError when the server cannot serve.

    Returns before the models are loaded if the end comes first: stopping the server waits for them.
    """
    loading = asyncio.ensure_future(server.start())
    ending = asyncio.ensure_future(end.wait())
    await asyncio.wait((loading, ending), return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    if loading.done():
        _show_tables(server)
        loading.result()
    else:
        loading.add_done_callback(lambda task: task.cancelled() or task.exception())


async def _stop(server: Server, frontends: Sequence[Frontend], timeout_s: float) -> bool:
    """End frontends, then the server, within one time; whether everything ended."""
    deadline = time.monotonic() + timeout_s
    await asyncio.gather(*(frontend.stop(timeout_s) for frontend in frontends))
    return not await server.stop(max(0.0, deadline - time.monotonic()))


def _end_on_signals() -> asyncio.Event:
    """An event that SIGINT or SIGTERM sets; the next of them ends the process at once."""
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

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


def _leave_at_once(text: str) -> NoReturn:
    """End the process without waiting for threads; child processes see their pipes close."""
    print(text, file=sys.stderr, flush=True)
    logging.shutdown()
    os._exit(1)


def _creation_failed(error: CoreError) -> int:
    print(f"error: creating server: {error.kind.title} - {error.message}", file=sys.stderr)
    return 1


def _say_what_is_idle(options: Options) -> None:
    for flag in idle_flags(options):
        logger.warning("--%s has no effect: %s", flag.name, flag.idle)
    for key in sorted(set(options.metrics_config) - set(SETTINGS)):
        logger.warning("--metrics-config=%s has no effect: there is no such setting", key)


def _show_tables(server: Server) -> None:
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
        [
            (name, _file_of(plugin), {**defaults, **found.config})
            for name, (plugin, found) in sorted(plugins.imported().items())
        ],
        server.table(),
    )


def _file_of(plugin: plugins.Plugin) -> str:
    module = sys.modules.get(plugin.entries[0].module)
    return str(Path(getattr(module, "__file__", None) or ""))


def _run(service: Coroutine[Any, Any, int]) -> int:
    try:
        import uvloop
    except ImportError:  # not on Windows; asyncio's own loop does the same, slower
        return asyncio.run(service)
    return int(uvloop.run(service))


if __name__ == "__main__":
    sys.exit(main())
