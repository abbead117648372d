"""The requests whose instructions are counted: python -m benchmarks.guard.lane LANE COUNT [LIBRARY]

It sends COUNT requests to a server without sockets: from the bytes that a connection gets to those that it
writes. LIBRARY is the library of collect.cc.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import importlib.util
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from benchmarks.exchange import Exchange, exchange
from benchmarks.guard.child import on_threads
from benchmarks.guard.connections import (
    Clients,
    HttpClients,
    Telling,
    Turns,
    Written,
)
from benchmarks.models import repository
from benchmarks.models.sample import samples
from core import plugins
from core.backend import Backend
from core.options import Options
from core.server import InferenceServer

Tell = Callable[[], object]
Round = Callable[[Clients], Awaitable[None]]

IN_FLIGHT = 16  # connections of a lane whose model batches
WARM = 48
ROUND_S = 60.0
BACKEND = Path(__file__).parents[1] / "identity_backend" / "backend_identity" / "__init__.py"


@dataclass(frozen=True)
class Counted:
    """The requests of a lane.

    model         with the models that it needs; all of the repository `shared`
    form          form of an Exchange
    connections   parallel connections, with one request each
    asked         names of the requests in `samples`, by default the model's. One name: its requests in turn,
                  others on each connection. Several: each connection repeats the request of one name
    in_child      whether the model runs in a child process, not on the loop
    """

    model: str
    form: str
    needs: tuple[str, ...] = ()
    connections: int = 1
    asked: tuple[str, ...] = ()
    in_child: bool = False

    def exchange(self) -> Exchange:
        """Return the exchange with all requests."""
        asked = [each for name in self.asked or (self.model,) for each in samples(name)]
        return exchange(self.form, [self.model], *asked)


def _rows(form: str, model: str, *asked: str, connections: int = IN_FLIGHT) -> Counted:
    return Counted(
        f"{model}_batched",
        form,
        connections=connections,
        asked=tuple(f"{model}_{each}" for each in asked),
        in_child=model == "add_sub",
    )


def _of_several_rows() -> Iterator[tuple[str, Counted]]:
    """Yield lanes with requests of 1 to 8 rows in turn with ids, and with as many rows in equal requests.

    Of the equal requests half of the connections send 4 rows, half 5.
    """
    for name, model in (("identity", "identity"), ("child", "add_sub")):
        for form in ("http-json", "http-binary", "grpc"):
            yield f"{form}-{name}-mixed", _rows(form, model, "mixed")
            yield f"{form}-{name}-alike", _rows(form, model, "4_rows", "5_rows")
    yield "http-binary-child-mixed-1", _rows("http-binary", "add_sub", "mixed", connections=1)


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
    **dict(_of_several_rows()),
}


def has_engine(lane: str) -> bool:
    """Return whether this installation can run the lane: gRPC lanes need the nghttp2 engine."""
    engine = "frontends.grpc.native.connection"
    return LANES[lane].form != "grpc" or importlib.util.find_spec(engine) is not None


def find_backend(name: str) -> Backend:
    """Return the identity backend from its file, since it may not be installed; others by name."""
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
    """Serve, warm up and check responses, then send about `count` requests between `begin` and `end`.

    Returns their number.
    """
    counted = LANES[lane]
    children = on_threads() if counted.in_child else nullcontext()
    with children, tempfile.TemporaryDirectory(prefix="guard-") as folder:
        options = Options.defaults(
            model_repository=[str(repository.write(Path(folder), "shared"))],
            model_control_mode="explicit",
            load_model=[counted.model, *counted.needs],
        )
        server = InferenceServer(options, find_backend=find_backend)
        await server.start()
        asked = counted.exchange()
        clients = clients_of(server, counted, asked)
        round_ = _round_of_children if counted.in_child else _round
        try:
            rounds = -(-count // counted.connections)
            await _warm(clients, asked, round_)
            clients.prepare(rounds)
            gc.collect()
            gc.disable()  # its time depends on all earlier allocations
            begin()
            if counted.connections == 1 and not counted.in_child:
                for _ in range(rounds):  # the response is complete when the call returns
                    clients.ask()
            else:
                for _ in range(rounds):
                    await round_(clients)
            end()
            assert all(each.count == WARM + rounds for each in clients.transports)
        finally:
            gc.enable()
            clients.close()
            await server.stop(10)
    return rounds * counted.connections


def clients_of(server: InferenceServer, counted: Counted, asked: Exchange) -> Clients:
    kind: type[Clients] = HttpClients
    if counted.form == "grpc":
        kind = importlib.import_module("benchmarks.guard.grpc_connections").GrpcClients
    transport = Telling if counted.in_child else Written
    transports = [transport() for _ in range(counted.connections)]
    turns = Turns(len(asked.requests), counted.connections, each_its_own=len(counted.asked) != 1)
    return kind(server, asked, transports, turns)


async def _warm(clients: Clients, asked: Exchange, round_: Round) -> None:
    clients.prepare(WARM)
    for _ in range(WARM):
        await round_(clients)
        for transport, number in zip(clients.transports, clients.asked, strict=True):
            difference = asked.samples[number].difference(clients.read(transport.take()))
            assert not difference, difference


async def _round(clients: Clients) -> None:
    """Send one request on each connection and wait until all are answered."""
    transports = clients.transports
    before = transports[-1].count
    clients.ask()
    while transports[-1].count == before:
        await asyncio.sleep(0)


async def _round_of_children(clients: Clients) -> None:
    """Send one request on each connection; the loop sleeps until child processes have answered all."""
    answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = len(clients.transports)

    def written() -> None:
        nonlocal left
        left -= 1
        if not left:
            answered.set_result(None)

    for transport in clients.transports:
        assert isinstance(transport, Telling)
        transport.written = written
    clients.ask()
    await asyncio.wait_for(answered, ROUND_S)


def main(lane: str, count: str, library: str = "") -> None:
    import uvloop

    collect = ctypes.CDLL(library) if library else None
    ends: tuple[Tell, Tell] = (collect.begin, collect.end) if collect else (int, int)
    print(uvloop.run(ask(lane, int(count), *ends)))


if __name__ == "__main__":
    main(*sys.argv[1:])
