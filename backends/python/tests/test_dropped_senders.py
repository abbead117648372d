"""Response senders that are deleted before the last response: the client gets an error and stops waiting."""

import asyncio

import numpy as np
import pytest

from core import CoreError, Kind

MODES = ["process", "shared", "thread", "inline"]
DROPPED = (
    "model 'm' dropped the response sender of a request without the final flag; call "
    "response_sender.send(flags=TRITONSERVER_RESPONSE_COMPLETE_FINAL)"
)
WITHOUT = (
    "model 'm' dropped the response sender of a request without a response; call "
    "response_sender.send(response, flags=TRITONSERVER_RESPONSE_COMPLETE_FINAL)"
)
ANSWERS = """
    def answer(self, sender, count):
        for number in range(count):
            sender.send(pb_utils.InferenceResponse(
                [pb_utils.Tensor("y", np.full(1, number, np.float32))]))
"""
# How a model parts from its senders; `count` is how many answers each has given before.
PARTS = {
    "never asked for": "pass",
    "dropped": "self.answer(request.get_response_sender(), count)",
    "on a thread": "threading.Thread("
    "target=self.answer, args=(request.get_response_sender(), count)).start()",
    "in a cycle": "cycle = [request.get_response_sender()]; self.answer(*cycle, count); cycle.append(cycle)",
}
LOOP = (
    ANSWERS
    + """
    def execute(self, requests):
        for request in requests:
            count = int(request.inputs()[0].as_numpy()[0])
            {part}
"""
)


async def collect(reply):
    """Return the received items: values, and the texts of errors."""
    found = []
    async for item in reply:
        found.append(item.message if isinstance(item, CoreError) else item.output("y").array[0])
    return found


def x(value):
    return {"x": np.array([value], np.float32)}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_client_gets_its_answers_and_an_error(serve, mode, part):
    model = await serve(LOOP.format(part=PARTS[part]), decoupled=True, mode=mode)
    counts = [0] if part == "never asked for" else [0, 1, 70]

    for count in counts:
        found = await asyncio.wait_for(collect(model.ask(x(count))), 30)
        assert found == [*range(count), DROPPED]

    assert model.chain.in_flight == 0
    assert model.statistics.failures["BACKEND"] == len(counts)
    assert model.statistics.success.count == 0


@pytest.mark.parametrize("mode", MODES)
async def test_an_exception_of_execute_is_logged_once(serve, mode):
    part = (
        "self.answer(request.get_response_sender(), count)\n            raise ValueError('later')"
    )
    model = await serve(LOOP.format(part=part), decoupled=True, mode=mode)

    found = await asyncio.wait_for(collect(model.ask(x(1))), 30)

    assert len(found) == 2
    assert "ValueError: later" in found[1]
    assert model.statistics.fail.count == 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_coroutine_that_ends_has_dropped_its_senders(serve, mode):
    source = (
        ANSWERS
        + """
    async def execute(self, requests):
        for request in requests:
            self.answer(request.get_response_sender(), 2)
    """
    )
    model = await serve(source, decoupled=True, mode=mode)

    assert await asyncio.wait_for(collect(model.ask(x(1))), 30) == [0, 1, DROPPED]


@pytest.mark.parametrize("mode", MODES)
async def test_a_sender_that_is_kept_may_answer_later(serve, mode):
    source = """
    kept = []

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            if request.request_id() == "end":
                sender.send(flags=1)
                while self.kept:
                    self.kept.pop().send(pb_utils.InferenceResponse(
                        [pb_utils.Tensor("y", np.ones(1, np.float32))]), flags=1)
            else:
                self.kept.append(sender)
    """
    model = await serve(source, decoupled=True, mode=mode)
    waiting = asyncio.ensure_future(collect(model.ask(x(1))))
    await asyncio.sleep(0.1)
    assert not waiting.done()

    assert await collect(model.ask(x(1), id="end")) == []

    assert await asyncio.wait_for(waiting, 30) == [1]


@pytest.mark.parametrize("mode", MODES)
async def test_a_request_that_is_kept_keeps_its_sender(serve, mode):
    source = """
    kept = []

    def execute(self, requests):
        for request in requests:
            if request.request_id() == "end":
                request.get_response_sender().send(flags=1)
                while self.kept:
                    self.kept.pop().get_response_sender().send(flags=1)
            else:
                self.kept.append(request)
    """
    model = await serve(source, decoupled=True, mode=mode)
    waiting = asyncio.ensure_future(collect(model.ask(x(1))))
    await asyncio.sleep(0.1)
    assert not waiting.done()

    assert await collect(model.ask(x(1), id="end")) == []

    assert await asyncio.wait_for(waiting, 30) == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_sender_of_an_ordinary_model_owes_its_response(serve, mode):
    source = """
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            if request.request_id() == "answer":
                sender.send(pb_utils.InferenceResponse(
                    [pb_utils.Tensor("y", np.ones(1, np.float32))]))
    """
    model = await serve(source, mode=mode)

    assert await model.y(1, id="answer") == [1]
    with pytest.raises(CoreError) as error:
        await asyncio.wait_for(_of(model.ask(x(1))), 30)

    assert (error.value.kind, error.value.message) == (Kind.INTERNAL, WITHOUT)
    assert model.statistics.failures["BACKEND"] == 1


@pytest.mark.parametrize("mode", MODES)
async def test_the_others_of_a_batch_get_their_answers(serve, mode):
    source = """
    def execute(self, requests):
        for request in requests:
            if request.inputs()[0].as_numpy()[0, 0] > 0:
                request.get_response_sender().send(pb_utils.InferenceResponse(
                    [pb_utils.Tensor("y", np.ones((1, 1), np.float32))]), flags=1)
    """
    model = await serve(
        source,
        "max_batch_size: 8 dynamic_batching { preferred_batch_size: 4 "
        "max_queue_delay_microseconds: 500000 }",
        decoupled=True,
        mode=mode,
    )

    found = await asyncio.gather(
        *(collect(model.ask({"x": np.full((1, 1), i % 2, np.float32)})) for i in range(4))
    )

    assert found == [[DROPPED], [1], [DROPPED], [1]]


@pytest.mark.parametrize("mode", MODES)
async def test_a_response_of_execute_is_the_last_one(serve, mode):
    source = """
    def execute(self, requests):
        senders = [request.get_response_sender() for request in requests]
        return [pb_utils.InferenceResponse(
            [pb_utils.Tensor("y", np.ones(1, np.float32))]) for request in requests]
    """
    for decoupled in (False, True):
        model = await serve(source, decoupled=decoupled, mode=mode)

        assert await collect(model.ask(x(1))) == [1]
        assert model.statistics.success.count == 1


async def _of(reply):
    return await reply
