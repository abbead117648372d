"""A thousand sequences at a time, for as long as one likes, in constant memory; over virtual time."""

import asyncio
import gc
import itertools
import random
import sys

import numpy as np
import pytest

import core
from core.pipeline.sequence.slots import Sequence
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest
from core.tensor import Tensor

CLIENTS = 1000
REQUESTS = 100_000
LENGTHS = (40, 120)  # of a sequence: the fewest and the most requests
ABANDONED = 0.2  # of the sequences get no END
LOOKS = 8  # at the memory, after as many requests each
MOST_BLOCKS = 2_000  # more of the interpreter's blocks of memory than at the first look

CONFIG = """
output [ { name: "count" data_type: TYPE_INT64 dims: [ 1 ] } ]
sequence_batching {
  %s
  max_sequence_idle_microseconds: 50000
  control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } }
  state { input_name: "seen" output_name: "count" data_type: TYPE_INT64 dims: [ 1 ] }
}
instance_group [ { count: 2 kind: KIND_CPU } ]
"""


class Counter(core.ModelInstance):
    """count: the requests of the sequence so far; after 1 ms."""

    async def execute(self, batch):
        await asyncio.sleep(0.001)
        return {"y": batch["x"], "count": batch["seen"] + 1}


class Crowd:
    """Clients that send the next request after each response, in one sequence after the other.

    No id is used twice; half of them are texts.
    """

    def __init__(self, chain):
        self.chain = chain
        self.chance = random.Random(1)
        self.ids = itertools.count(1)
        self.asked = self.abandoned = 0
        self.blocks, self.sequences, self.requests = [], [], []

    async def run(self):
        await asyncio.gather(*(self.client() for _ in range(CLIENTS)))

    async def client(self):
        while self.asked < REQUESTS:
            number = next(self.ids)
            await self.sequence(number if number % 2 else f"sequence-{number}")

    async def sequence(self, id):
        length = self.chance.randint(*LENGTHS)
        is_abandoned = self.chance.random() < ABANDONED
        self.abandoned += is_abandoned
        for i in range(length):
            flags = SEQUENCE_START if i == 0 else 0
            if i == length - 1 and not is_abandoned:
                flags |= SEQUENCE_END
            x = Tensor.of("x", np.zeros((1, 1), np.float32))
            request = InferenceRequest("m", {"x": x}, correlation_id=id, flags=flags)
            response = await self.chain.handler(request)
            assert response.output("count").array.item() == i + 1
            self.asked += 1
            if self.asked > REQUESTS:
                return
            if self.asked % (REQUESTS // LOOKS) == 0:
                self.look()

    def look(self):
        gc.collect()
        self.blocks.append(sys.getallocatedblocks())
        kinds = [type(each) for each in gc.get_objects()]
        self.sequences.append(kinds.count(Sequence))
        self.requests.append(kinds.count(InferenceRequest))


@pytest.mark.parametrize("strategy", ["direct { }", "oldest { max_candidate_sequences: 600 }"])
async def test_a_thousand_sequences_at_a_time_take_constant_memory(serve, strategy):
    chain = await serve(Counter, CONFIG % strategy, max_batch_size=64)
    crowd = Crowd(chain)

    await crowd.run()

    first, *others = crowd.blocks
    assert len(others) >= LOOKS - 1
    assert max(others) < first + MOST_BLOCKS, crowd.blocks
    assert max(crowd.sequences) <= 1.2 * CLIENTS  # some are not yet known to be abandoned
    assert max(crowd.requests) <= 1.2 * CLIENTS
    assert crowd.abandoned > 100
    assert chain.in_flight == chain.pending == 0
