"""serve: the process of a router, from its options to its end."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys

from core.errors import CoreError, unavailable
from core_router.operate.admin import Admin
from core_router.options import RouterOptions
from core_router.router import PortInUse, Router

logger = logging.getLogger("core_router")

# As in core: a batch of connections' requests allocates more than Python's default threshold, in no cycle.
_YOUNG = 5000


def serve(options: RouterOptions) -> int:
    """Serve until SIGINT or SIGTERM; return the exit status.

    Raises CoreError(UNAVAILABLE) if a port is in use, CoreError(INVALID) for certificates that are no use.
    """
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname).1s %(message)s"
    )
    gc.set_threshold(_YOUNG, *gc.get_threshold()[1:])
    if sys.platform == "win32":
        return asyncio.run(_serve(options))
    import uvloop

    loop = uvloop.new_event_loop()
    try:
        return loop.run_until_complete(_serve(options))
    finally:
        loop.close()


async def _serve(options: RouterOptions) -> int:
    loop = asyncio.get_running_loop()
    ended, hurried = asyncio.Event(), asyncio.Event()

    def end() -> None:
        if ended.is_set():
            hurried.set()
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    router = Router(options)
    loop.add_signal_handler(signal.SIGHUP, router.files.look, True)
    admin = Admin(router)
    try:
        opening = loop.create_task(_open(router, admin, options))
        if not await _unless(opening, ended):
            return 0
        await ended.wait()
        logger.info("ending: requests in flight are answered; a second signal ends at once")
        await _unless(loop.create_task(router.drain()), hurried)
        return 0
    finally:
        await admin.close()
        await router.close()


async def _open(router: Router, admin: Admin, options: RouterOptions) -> None:
    try:
        ports = await router.open()
    except PortInUse as error:
        raise _in_use(error.option, error.address, error.port, error.error) from None
    try:
        admin_port = await admin.open(options.admin_address, options.admin_port)
    except OSError as error:
        raise _in_use("--admin-port", options.admin_address, options.admin_port, error) from None
    scheme = "https" if options.admin_certificates else "http"
    tls = " with TLS" if options.grpc_certificates else ""
    if options.server_certificates is not None and options.server_certificates.is_insecure:
        logger.warning(
            "--server-insecure: any certificate of a server is accepted; who answers is not certain"
        )
    logger.info(
        "router at %s://%s:%d for clients%s, %s://%s:%d for operators",
        "https" if options.http_certificates else "http",
        options.address,
        ports.http,
        f", {options.address}:{ports.grpc} for gRPC{tls}" if ports.grpc else "",
        scheme,
        options.admin_address,
        admin_port,
    )
    if admin.console is not None:
        logger.info("console at %s://%s:%d/console", scheme, options.admin_address, admin_port)


async def _unless(task: asyncio.Task[None], event: asyncio.Event) -> bool:
    """Await a task unless the event comes first, which cancels it. Return whether the task is done."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if task.done():
        task.result()
        return True
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return False


def _in_use(option: str, address: str, port: int, error: OSError) -> CoreError:
    return unavailable(
        f"cannot listen on {address}:{port}: {error.strerror or error}; choose another port with {option}, "
        f"or end the process that listens there: `ss -ltnp 'sport = :{port}'` shows it"
    )
