"""Models in virtual time: a loop whose clock jumps to the next timer, so that minutes take milliseconds."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from core_fairness.fair_queue import FairQueue
from core_fairness.settings import Fairness
from flow.conftest import AtOnce

import core
from core import config as configuration
from core.pipeline import ChainServices
from core.pipeline.chain import Chain, ModelHooks
from core.request import InferenceRequest
from core.tensor import Tensor

IO = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
BATCHES = "max_batch_size: 8 dynamic_batching {} " + IO


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while everything waits, and then at once."""

    now = 1000.0

    def time(self):
        return self.now

    def time_ns(self):
        return round(self.now * 1e9)

    def _run_once(self):
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0].when())
        super()._run_once()


class Sleeper(core.ModelInstance):
    """Takes as long as the model says for a batch, and notes the first value of each request."""

    async def execute(self, batch):
        model = self.model
        model.batches.append([float(each.inputs["x"].array.flat[0]) for each in batch.requests])
        await asyncio.sleep(model.batch_s + model.row_s * batch.rows)
        return {"y": batch["x"]}


class Served:
    """A model with a fair queue. `batches` has the first value of each request of each execution."""

    def __init__(
        self,
        loop,
        text,
        *,
        name="m",
        batch_s=0.02,
        row_s=0.0,
        instance=Sleeper,
        by_caller=True,
        table=None,
    ):
        self.loop = loop
        self.name = name
        message = configuration.parse_text(f'name: "{name}" backend: "test" {text}', "test")
        configuration.normalise(message, {}, [])
        self.model = core.Model()
        self.model.name, self.model.version, self.model.config = name, 1, message
        self.model.path = self.model.directory = Path()
        self.model.backend = core.Backend(instance=instance)
        self.model.batches, self.model.batch_s, self.model.row_s = [], batch_s, row_s
        self.names = {1: "alice", 2: "bob", 3: "carol"}
        self.queue = FairQueue(
            self.model,
            lambda number: self.names.get(number, f"caller{number}"),
            loop,
            by_caller=by_caller,
            table=table,
            clock_ns=loop.time_ns,
        )

    async def open(self, group=None, **settings):
        if group is not None:
            group.add(self.queue)
        signature = configuration.signature_of(self.model.config, Path(), 1)
        self.chain = Chain(
            self.model.config,
            signature,
            ChainServices(self.loop, clock_ns=self.loop.time_ns),
            ModelHooks(layers=[self.queue.layer]),
        )
        (await self.chain.prepare(self.model)).commit()
        self.queue.ready(self.chain, signature, Fairness.read(settings))
        return self

    @property
    def batches(self):
        return self.model.batches

    def ask(self, caller, value=0.0, rows=1, columns=1, **fields):
        """Send a request of a caller; return its Reply."""
        shape = (rows, columns) if self.model.config.max_batch_size else (columns,)
        x = Tensor.of("x", np.full(shape, value, np.float32))
        request = InferenceRequest(self.name, {"x": x}, **fields)
        request.caller = caller
        return self.chain.handler(request)

    async def latency(self, caller, **fields):
        """Return the seconds until the answer to one request."""
        begun = self.loop.time()
        await self.ask(caller, **fields)
        return self.loop.time() - begun

    async def flood(self, caller, clients, seconds, **fields):
        """Keep `clients` requests of a caller in flight for some seconds; return the number of answers."""
        end = self.loop.time() + seconds

        async def client():
            count = 0
            while self.loop.time() < end:
                await self.ask(caller, **fields)
                count += 1
            return count

        return sum(await asyncio.gather(*(client() for _ in range(clients))))

    async def close(self):
        await self.chain.drain()
        await self.chain.close()
        assert self.queue.used == self.queue.waiting == 0
        assert not self.queue._sequences and not self.queue._inside


@pytest.fixture
def virtual():
    """Run a coroutine function in virtual time: virtual(test); it gets a function that opens models."""

    def run(test):
        loop = VirtualLoop()
        loop.set_default_executor(AtOnce())  # virtual time does not wait for threads

        async def all_of_it():
            opened = []

            async def serve(text=BATCHES, settings=None, group=None, **more):
                opened.append(await Served(loop, text, **more).open(group, **(settings or {})))
                return opened[-1]

            await test(serve)
            for each in opened:
                await each.close()

        try:
            loop.run_until_complete(asyncio.wait_for(all_of_it(), 3600))
        finally:
            loop.close()

    return run
