"""Requests that a model wants to see again: TRITONSERVER_REQUEST_RELEASE_RESCHEDULE."""

import numpy as np
import pytest

from core import CoreError

MODES = ["process", "thread", "inline"]
AGAIN = """
    def initialize(self, args):
        self.seen = {}

    def execute(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        wanted = request.inputs()[0].as_numpy().flat[0]
        seen = self.seen[request.request_id()] = self.seen.get(request.request_id(), 0) + 1
        if seen < wanted:
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return None
        return self.answer(request, seen)
"""
PLAIN = """
    def answer(self, request, seen):
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.full((1, 1), seen, np.float32))])
"""
DECOUPLED = """
    def answer(self, request, seen):
        sender = request.get_response_sender()
        for number in range(seen):
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor(
                "y", np.full((1, 1), number, np.float32))]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def x(value):
    return {"x": np.full((1, 1), value, np.float32)}


async def answers(reply):
    return [each.output("y").array.item() async for each in reply if each.outputs]


@pytest.mark.parametrize("mode", MODES)
async def test_a_request_is_rescheduled_until_it_is_answered(serve, mode):
    model = await serve(AGAIN + PLAIN, "max_batch_size: 4 dynamic_batching { }", mode=mode)
    replies = [model.ask(x(number), id=str(number)) for number in range(1, 7)]

    found = [await answers(reply) for reply in replies]

    assert found == [[1], [2], [3], [4], [5], [6]]
    assert model.statistics.success.count == 6


@pytest.mark.parametrize("mode", MODES)
async def test_a_decoupled_model_may_see_a_request_again(serve, mode):
    model = await serve(AGAIN + DECOUPLED, "max_batch_size: 4", mode=mode, decoupled=True)

    assert await answers(model.ask(x(3), id="a")) == [0, 1, 2]


@pytest.mark.parametrize("mode", MODES)
async def test_a_request_is_answered_or_rescheduled_but_not_both(serve, mode):
    source = """
    def execute(self, requests):
        requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        return [pb_utils.InferenceResponse([])]
    """
    model = await serve(source, mode=mode)

    with pytest.raises(CoreError) as error:
        await model.y(1)

    assert error.value.message.endswith(
        "Expected a None object in the execute function return list for reschduled request, found "
        "type '<class 'backend_python.api.response.InferenceResponse'>'."
    )
