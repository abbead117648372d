"""Several workers in one process: real servers and channels, no other process and no port.

Each worker has a manager over the same folders, and a backend of its own that a test can let fail.
"""

import asyncio
import socket
from types import SimpleNamespace

import pytest
from core_workers.channel import open_channel
from core_workers.exchange import Exchange
from core_workers.member import Member
from core_workers.relay import Relay
from unit.conftest import folder

import core
from core import plugins
from core.options import Options
from core.server import InferenceServer

__all__ = ["folder"]


class Switched(core.Model):
    def load(self):
        if self.name in self.backend.refused:
            raise RuntimeError("no memory here")
        if (other := self.backend.brings.get(self.name)) is not None:
            asyncio.run_coroutine_threadsafe(self._bring(other), self.backend.loop).result()
        self.backend.loads.append(self.name)

    async def _bring(self, other):
        async with self.waits():
            await self.server.load(other)


class Identity(core.ModelInstance):
    def execute(self, batch):
        return {"y": batch["x"]}


class Fleet:
    """The supervisor's relay and exchange, and workers with whole servers, all in this process.

    brought   for the backends of the workers
    options   of the servers
    """

    def __init__(self, brought=None, **options):
        self.options = options
        self.brought = brought or {}
        self.exchange = Exchange(patience_s=0.2)
        self.relay = Relay(self.exchange, {})
        self.workers = {}
        self.all = []  # those that have been replaced too

    async def start(self, numbers):
        operation = self.exchange.begin(numbers)
        for number in numbers:
            await self.connect(number, operation.number)
            self.exchange.join(number)
        starts = [self.begin(number) for number in numbers]
        await asyncio.gather(*starts)
        self.exchange.end(operation)
        self.relay.complete = True

    async def connect(self, number, operation):
        ours, theirs = socket.socketpair()
        channel = await open_channel(ours)
        self.exchange.connect(number, channel.send)
        member = Member(await open_channel(theirs), number, 2, operation)

        async def listen():
            while (message := await channel.receive()) is not None:
                self.relay.received(number, message)

        backend = core.Backend(instance=Identity, model=Switched)
        backend.refused, backend.loads, backend.brings = set(), [], dict(self.brought)
        backend.loop = asyncio.get_running_loop()
        options = Options.defaults(workers=2, exit_on_error=False, **self.options)
        server = InferenceServer(options, find_backend=lambda name: backend, exchange=member)
        plugins.ask("core_server_starting", server=server)
        listener = asyncio.get_running_loop().create_task(listen())
        self.workers[number] = SimpleNamespace(
            server=server, member=member, backend=backend, channel=channel, listener=listener
        )
        self.all.append(self.workers[number])
        return self.workers[number]

    async def begin(self, number):
        worker = self.workers[number]
        await worker.member.starting(worker.server.start())
        operation = self.exchange._operations.get(worker.member._start)
        if operation is not None:
            operation.ended(number)

    def die(self, number):
        """Let the exchange find that a worker has ended, without a message of the worker."""
        self.exchange.leave(number)

    def control(self, number):
        return self.workers[number].server.control

    async def close(self):
        self.relay.close()
        for worker in self.all:
            await worker.server.stop(5)
            worker.channel.close()
            await worker.member.end.wait()
            await worker.member.close()
            worker.listener.cancel()


@pytest.fixture
def new_fleet():
    """The class Fleet: the test starts and closes the fleets that it makes."""
    return Fleet


@pytest.fixture
async def start(folder):
    fleets = []

    async def made(**options):
        fleet = Fleet(
            **{"model_repository": [str(folder.path)], "model_control_mode": "explicit", **options}
        )
        fleets.append(fleet)
        await fleet.start([1, 2])
        return fleet

    yield made
    for fleet in fleets:
        await fleet.close()
