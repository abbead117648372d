"""Clients of an engine's model: slow ones, those that cancel, and the order in which they wait."""

import asyncio
import random

import pytest
from core_generate import metrics
from core_testing.served import request_of

from core.errors import CoreError, Kind

from .conftest import Plain, asked, backend_of, parameters, text_of

pytest_plugins = ["core_testing.plugin"]


class Client:
    """Listens to the reply to one request: keeps texts and error, and sets `ended`. Event loop only."""

    def __init__(self, inputs):
        self.request = request_of(inputs, (), "m")
        self.texts = []
        self.error = None
        self.ended = asyncio.Event()

    def __call__(self, item, final):
        if isinstance(item, CoreError):
            self.error = item
        elif item is not None:
            self.texts.append(text_of([{"text_output": item.output("text_output").array}]))
        if final:
            self.ended.set()


def test_what_waits_for_a_slow_client_leaves_as_one_response(serve):
    served = serve()

    async def act():
        models = served._server.models
        slow, quick = [Client(asked("abc", "stream", max_tokens=500)) for _ in range(2)]
        slow.request.pause()
        for each in (slow, quick):
            models.infer(each.request).listen(each)
        await asyncio.wait_for(quick.ended.wait(), 60)
        while engine_of().status().running:
            await asyncio.sleep(0.001)
        before = list(slow.texts)
        slow.request.resume()
        await asyncio.wait_for(slow.ended.wait(), 60)
        return before, slow.texts, quick.texts

    before, slow, quick = served._call(act())

    assert len(before) == 0
    assert len(slow) == 1
    assert "".join(slow) == "".join(quick)


def measured_of():
    (measured,) = metrics._LOADED.values()
    return measured


def engine_of():
    return measured_of().model.engine


def test_a_cancelled_request_ends_at_once_and_frees_its_place(serve):
    served = serve(parameters(most=1, delay_ms=1))

    async def act():
        models = served._server.models
        first, second = Client(asked("abc", "stream")), Client(asked("abc", max_tokens=2))
        for each in (first, second):
            models.infer(each.request).listen(each)
        while not first.texts:
            await asyncio.sleep(0.001)
        first.request.cancel()
        await asyncio.wait_for(first.ended.wait(), 60)
        await asyncio.wait_for(second.ended.wait(), 60)
        return first, second

    first, second = served._call(act())

    assert first.error.kind is Kind.CANCELLED
    assert second.texts == ["abcde"]


def test_a_request_that_is_cancelled_before_its_start_never_reaches_the_engine(serve):
    started = []

    class Starts(Plain):
        def generate(self, prompt, sampling, emit):
            started.append(prompt.text)
            return super().generate(prompt, sampling, emit)

    served = serve(backend=backend_of(Starts))

    async def act():
        client = Client(asked("first"))
        client.request.cancel()
        with pytest.raises(CoreError):
            await served._server.models.infer(client.request)

    served._call(act())
    served.stream(asked("second"), "m")

    assert started[-1] == "second"


def test_requests_wait_in_the_queue_of_the_model_by_priority(serve):
    priorities = "dynamic_batching { priority_levels: 2 default_priority_level: 2 }\n"
    served = serve(parameters(most=1, delay_ms=1) + priorities)
    order = []

    async def act():
        models = served._server.models
        clients = [Client(asked("abc", max_tokens=3)) for _ in range(4)]
        clients[3].request.priority = 1

        async def ended(number):
            await asyncio.wait_for(clients[number].ended.wait(), 60)
            order.append(number)

        for each in clients:
            models.infer(each.request).listen(each)
        await asyncio.gather(*map(ended, range(4)))

    served._call(act())

    assert order == [0, 3, 1, 2]


@pytest.mark.parametrize("seed", range(3))
def test_streams_cancellations_and_slow_clients_in_any_order_all_end(serve, seed):
    served = serve(parameters(most=8))
    chance = random.Random(seed)
    alphabet = "abcdefghijklmnopqrstuvwxyz "

    async def client():
        tokens = chance.randrange(1, 200)
        one = Client(asked("z ", *chance.choice(((), ("stream",))), max_tokens=tokens))
        served._server.models.infer(one.request).listen(one)
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(chance.random() / 100)
            chance.choice((one.request.pause, one.request.resume))()
        if cancels := chance.random() < 0.3:
            one.request.cancel()
        one.request.resume()
        await asyncio.wait_for(one.ended.wait(), 60)
        text = "".join(one.texts).removeprefix("z ")
        if not cancels or one.error is None:
            assert text == (alphabet * 8)[:tokens]
        else:
            assert one.error.kind is Kind.CANCELLED
            assert (alphabet * 8).startswith(text)

    async def act():
        await asyncio.gather(*(client() for _ in range(100)))
        await asyncio.wait_for(rest(), 60)

    async def rest():
        # The engine's thread ends a generation that was cancelled, and the loop hears of it later.
        while engine_of().status().running or measured_of().running:
            await asyncio.sleep(0.001)

    served._call(act())
