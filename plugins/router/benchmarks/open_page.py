"""Measure what an open page costs a router: python plugins/router/benchmarks/open_page.py

Ten servers with a thousand models each. All of them have new counts each second: more cannot change. Prints
the processor time of a second, and the longest that other work of the event loop waits. Uses no network.
"""

import asyncio
import gc
import statistics
import time

from core_console.page import Page
from core_router.operate.fleet import Fleet
from core_router.options import RouterOptions
from core_router.router import Router
from core_router.servers.server import Address, Server
from core_router.servers.server_model import ServerModel

SERVERS, MODELS, SECONDS = 10, 1000, 5


def made():
    """Return a router that knows the servers, but sends them nothing."""
    router = Router(RouterOptions((), grpc_port=None))
    router.servers.since_s = lambda server: 0.0
    for number in range(SERVERS):
        server = Server(Address(f"gpu{number}", 8000))
        router.table.servers[server.name] = server
        for name in (f"model_{each}" for each in range(MODELS)):
            model = server.models[name] = ServerModel(server, name)
            model.versions = frozenset({"1"})
    return router


def count(router):
    """Count one more response of each model on each server."""
    for server in router.table.servers.values():
        for model in server.models.values():
            model.begin()
            model.done(200, 0.004, time.monotonic())


async def longest_wait(task):
    """Return the longest time between two turns of the event loop until a task ends, in seconds."""
    longest, last = 0.0, time.perf_counter()
    while not task.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest


async def measured():
    """Return the processor time of each second, and the longest wait of each."""
    router, spent, waits = made(), [], []
    page = Page(Fleet(router).look, "core_router")
    events = page.events(lambda: None)
    await anext(events)
    for second in range(2 * SECONDS):
        count(router)
        task = asyncio.create_task(anext(events))
        if second % 2:
            waits.append(await longest_wait(task))
        else:
            begin = time.process_time()
            await task
            spent.append(time.process_time() - begin)
    await events.aclose()
    page.close()
    return spent, waits


def main():
    gc.set_threshold(5000, *gc.get_threshold()[1:])  # as core_router/program.py does
    spent, waits = asyncio.run(measured())
    print(
        f"a second takes {statistics.median(spent) * 1e3:.0f} ms of the processor; "
        f"the longest wait is {statistics.median(waits) * 1e3:.0f} ms, at most {max(waits) * 1e3:.0f} ms"
    )


if __name__ == "__main__":
    main()
