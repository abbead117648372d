"""The requests whose instructions are counted: python -m benchmarks.guard.lane LANE COUNT [LIBRARY]

A Server without sockets: from the bytes that a connection gets to those that it writes, COUNT times.
LIBRARY is what collect.cc compiles to.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.exchange import exchange
from benchmarks.guard.connections import Clients, GrpcClients, HttpClients
from benchmarks.models import repository
from benchmarks.models.sample import SAMPLES
from core import plugins
from core.backend import Backend
from core.options import Options
from core.server import Server

Tell = Callable[[], object]

IN_FLIGHT = 16  # of a lane whose model batches: as many connections
WARM = 48
BACKEND = Path(__file__).parents[1] / "identity_backend" / "backend_identity" / "__init__.py"


@dataclass(frozen=True)
class Counted:
    """What is asked of whom.

    model         and the models that it needs; all of the repository `shared`
    form          as exchange.py knows it
    connections   that ask at once, one request each
    """

    model: str
    form: str
    needs: tuple[str, ...] = ()
    connections: int = 1


LANES = {
    "http-json": Counted("identity", "http-json"),
    "http-binary": Counted("identity", "http-binary"),
    "http-batched": Counted("identity_batched", "http-binary", connections=IN_FLIGHT),
    "http-ensemble": Counted("three_steps", "http-json", ("identity",)),
    "http-add-sub": Counted("add_sub_inline_batched", "http-binary", connections=IN_FLIGHT),
    "http-add-sub-each": Counted("add_sub_inline", "http-binary"),
    "http-add-sub-json": Counted("add_sub_inline", "http-json"),
    "grpc": Counted("identity", "grpc"),
    "grpc-batched": Counted("identity_batched", "grpc", connections=IN_FLIGHT),
}


def find_backend(name: str) -> Backend:
    """The identity backend from its file, for it need not be installed here; others as they are."""
    if name != "identity":
        return plugins.backend(name)
    spec = importlib.util.spec_from_file_location("backend_identity", BACKEND)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Backend = module.backend
    found.name = name
    return found


async def ask(lane: str, count: int, begin: Tell, end: Tell) -> int:
    """Serve, check one answer, warm up, then ask about `count` times between `begin` and `end`.

    Returns how often it was.
    """
    counted = LANES[lane]
    with tempfile.TemporaryDirectory(prefix="guard-") as folder:
        options = Options.defaults(
            model_repository=[str(repository.write(Path(folder), "shared"))],
            model_control_mode="explicit",
            load_model=[counted.model, *counted.needs],
        )
        server = Server(options, find_backend=find_backend)
        await server.start()
        clients = clients_of(server, counted)
        try:
            rounds = -(-count // counted.connections)
            await _warm(clients, counted)
            clients.prepare(rounds)
            gc.collect()
            gc.disable()  # when it comes depends on all that was before
            begin()
            if counted.connections == 1:  # the answer is there when the call returns
                for _ in range(rounds):
                    clients.ask()
            else:
                for _ in range(rounds):
                    await _round(clients)
            end()
            assert all(each.count == WARM + rounds for each in clients.transports)
        finally:
            gc.enable()
            clients.close()
            await server.stop(10)
    return rounds * counted.connections


def clients_of(server: Server, counted: Counted) -> Clients:
    kind = GrpcClients if counted.form == "grpc" else HttpClients
    asked = exchange(counted.form, [counted.model], SAMPLES[counted.model]())
    return kind(server, asked, counted.connections)


async def _warm(clients: Clients, counted: Counted) -> None:
    clients.prepare(WARM)
    sample = SAMPLES[counted.model]()
    for _ in range(WARM):
        await _round(clients)
        for transport in clients.transports:
            difference = sample.difference(clients.read(transport.take()))
            assert not difference, difference


async def _round(clients: Clients) -> None:
    """One request on each connection, until all are answered."""
    transports = clients.transports
    before = transports[-1].count
    clients.ask()
    while transports[-1].count == before:
        await asyncio.sleep(0)


def main(lane: str, count: str, library: str = "") -> None:
    import uvloop

    collect = ctypes.CDLL(library) if library else None
    ends: tuple[Tell, Tell] = (collect.begin, collect.end) if collect else (int, int)
    print(uvloop.run(ask(lane, int(count), *ends)))


if __name__ == "__main__":
    main(*sys.argv[1:])
