"""Ten thousand requests of random sequences, over virtual time, compared with a slow and simple model.

Clients start, continue, restart, abandon and end sequences, and cancel requests. In all cases no request is
lost or answered twice, and a sequence is executed in the order of its requests.
"""

import asyncio
import random

import numpy as np
import pytest

import core
from core.errors import CoreError, Kind, internal
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest
from core.tensor import Tensor

START, END = SEQUENCE_START, SEQUENCE_END
REQUESTS = 10_000
IDS = 40
IDLE_S = 0.050
GAP_S = 0.0008  # between two requests, on average
FAILS = 13  # a request fails in the model if its number is a multiple of this
LATE = 7  # one of these is answered after its execution, where the server keeps the state

CONFIG = """
output [ { name: "count" data_type: TYPE_INT64 dims: [ 1 ] } ]
sequence_batching {
  %s
  max_sequence_idle_microseconds: 50000
  control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } }
  %s
}
instance_group [ { count: 2 kind: KIND_CPU } ]
"""


STATE = 'state { input_name: "seen" output_name: "count" data_type: TYPE_INT64 dims: [ 1 ] }'


class Counter(core.ModelInstance):
    """count: how many requests of the sequence have succeeded since its START, where the server keeps
    that; after up to 3 ms."""

    def open(self):
        self.chance = random.Random(7)

    async def execute(self, batch):
        numbers = batch["x"].ravel().astype(int).tolist()
        real = [n for n, ready in zip(numbers, batch["READY"].ravel(), strict=True) if ready]
        self.model.recorder.began(real)
        await asyncio.sleep(self.chance.random() * 0.003)
        for i, number in enumerate(numbers):
            if "seen" in batch and number % LATE == 0 and number in real:
                batch.defer(i)
                asyncio.get_running_loop().call_later(0.002, self.answer, batch, i, number)
            else:
                self.answer(batch, i, number)

    def answer(self, batch, i, number):
        self.model.recorder.ended([number])
        row = slice(i, i + 1)
        count = batch["seen"][row] + 1 if "seen" in batch else np.zeros((1, 1), np.int64)
        if number % FAILS == 0:
            batch.fail(i, internal("no luck"))
        else:
            batch.respond(i, {"y": batch["x"][row], "count": count})


class Life:
    """A sequence from the client's view: from a START to an END, or until it is abandoned.

    asked   the numbers of its accepted requests, in their order
    """

    def __init__(self, id):
        self.id = id
        self.asked = []
        self.over = False


class Asked:
    """One accepted request and what became of it."""

    def __init__(self, life, flags, reply, now_s):
        self.life, self.flags, self.reply = life, flags, reply
        self.arrived_s, self.began_s = now_s, None
        self.cancelled = False
        self.items = []
        reply.listen(lambda item, final: self.items.append((item, final)))

    @property
    def was_refused(self):
        """Cancelled before it ran."""
        item, _ = self.items[0]
        return isinstance(item, CoreError) and item.kind is Kind.CANCELLED


class Book:
    """The requests, observations and expectations of the simulation; it replaces the Recorder."""

    def __init__(self, loop):
        self.loop = loop
        self.asked = {}
        self.executed = []
        self.running = set()  # lives
        self.lives = {}

    def began(self, numbers):
        for number in numbers:
            asked = self.asked[number]
            assert asked.began_s is None, f"request {number} is executed twice"
            assert asked.life not in self.running, "two requests of a sequence run together"
            assert not asked.items, f"request {number} is executed after its answer"
            asked.began_s = self.loop.time()
            self.running.add(asked.life)
            self.executed.append(number)

    def ended(self, numbers):
        self.running -= {self.asked[number].life for number in numbers if number in self.asked}

    def idle_since(self, life):
        """When its last request came or ran; None while one waits."""
        requests = [self.asked[number] for number in life.asked]
        if any(each.began_s is None and not each.items for each in requests):
            return None
        return max(max(each.arrived_s, each.began_s or 0) for each in requests)

    def must_be_known(self, life):
        since = None if life.over else self.idle_since(life)
        return not life.over and (since is None or self.loop.time() < since + IDLE_S - 1e-6)

    def must_be_forgotten(self, life):
        """True if it is certain: one that never had a place only begins to be idle when it has."""
        if life.over:
            return True
        since = self.idle_since(life)
        placed = any(self.asked[number].began_s is not None for number in life.asked)
        return placed and since is not None and self.loop.time() > since + IDLE_S + 1e-6


def send(chain, book, chance, number):
    """One more request, of a random sequence with random flags."""
    id = chance.randint(1, IDS)
    life = book.lives.get(id)
    goes_on = life is not None and not life.over
    flags = START if chance.random() < (0.05 if goes_on else 0.9) else 0
    flags |= END if chance.random() < 0.2 else 0
    x = Tensor.of("x", np.full((1, 1), number, np.float32))
    request = InferenceRequest("m", {"x": x}, correlation_id=id, flags=flags)
    if life is None or (flags & START and not book.must_be_known(life)):
        life = Life(id)
    known = bool(life.asked) and book.must_be_known(life)
    forgotten = not life.asked or book.must_be_forgotten(life)
    # The answer may come while the request is handed in.
    book.asked[number] = None
    life.asked.append(number)
    try:
        reply = chain.handler(request)
    except CoreError as error:
        assert "must specify the START flag" in error.message
        assert not flags & START
        assert not known, f"sequence {id} was forgotten too early"
        life.asked.pop()
        life.over = True
        del book.asked[number]
        return None
    assert flags & START or not forgotten, f"sequence {id} should have been forgotten"
    book.lives[id] = life
    life.over = bool(flags & END)
    book.asked[number] = Asked(life, flags, reply, book.loop.time())
    return book.asked[number]


async def drive(chain, book, chance):
    for number in range(1, REQUESTS + 1):
        send(chain, book, chance, number)
        if chance.random() < 0.1:
            asked = book.asked.get(chance.randint(max(1, number - 60), number))
            if asked is not None and not asked.items:
                asked.cancelled = True
                asked.reply.cancel()
        if chance.random() < 0.001:
            await asyncio.sleep(2 * IDLE_S)  # all sequences have ended
        await asyncio.sleep(chance.expovariate(1 / GAP_S))
    await asyncio.sleep(60)


def check(book, counts):
    """Compare what has come with what must have."""
    order = {number: place for place, number in enumerate(book.executed)}
    for number, asked in book.asked.items():
        assert [final for _, final in asked.items] == [True], f"request {number}: {asked.items}"
        assert asked.was_refused == (number not in order)
        assert asked.cancelled or not asked.was_refused
    for life in {asked.life for asked in book.asked.values()}:
        executed = [number for number in life.asked if number in order]
        assert executed == sorted(executed, key=order.__getitem__)
        count = 0
        for number in executed:
            item, _ = book.asked[number].items[0]
            if book.asked[number].flags & START:
                count = 0
            if number % FAILS == 0:
                assert isinstance(item, CoreError)
                assert item.message == "no luck"
                continue
            count += 1
            assert item.output("y").array.item() == number
            assert item.output("count").array.item() == (count if counts else 0)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("strategy", ["direct { }", "oldest { max_candidate_sequences: 5 }"])
@pytest.mark.parametrize(("state", "seed"), [("", 1), (STATE, 2)])
async def test_no_request_is_lost_doubled_or_out_of_order(serve, strategy, state, seed):
    loop = asyncio.get_running_loop()
    book = Book(loop)
    chain = await serve(Counter, CONFIG % (strategy, state), max_batch_size=4, recorder=book)

    await drive(chain, book, random.Random(seed))

    check(book, counts=bool(state))
    assert chain.in_flight == chain.pending == 0
    refused = sum(asked.was_refused for asked in book.asked.values())
    assert refused > REQUESTS // 100  # otherwise the simulation tests too little
    assert len(book.executed) > REQUESTS // 2
