"""Short executions of requests that run one by one are sent ahead, and answered together."""

import asyncio

import numpy as np
import pytest
from backend_python.server.active import AHEAD, SHORT_NS, Took

from core import CoreError

PLUS_ONE = """
    def execute(self, requests):
        assert len(requests) == 1
        x = requests[0].inputs()[0].as_numpy()
        if x[0] == -1:
            os._exit(1)
        if x[0] == -2:
            time.sleep(0.001)  # long, whatever comes first
        while x[0] == -2 and not os.path.exists(os.path.join(pb_utils.get_model_dir(), "go")):
            time.sleep(0.001)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x + 1)])]
"""


def instance(model):
    (worker,) = model.chain._pool.workers
    return worker.instance


async def short(serve):
    """A model that has been asked until it is known that its executions are short."""
    model = await serve(PLUS_ONE)
    while instance(model).ahead == 1:
        assert await model.y(1) == [2]
    return model


async def test_many_at_once_have_their_own_answers_in_order(serve):
    model = await short(serve)
    assert instance(model).ahead == AHEAD
    before = model.statistics.execution_count
    order = []

    async def one(i):
        assert await model.y(i) == [i + 1]
        order.append(i)

    await asyncio.gather(*(one(i) for i in range(1000)))

    assert order == list(range(1000))
    assert model.statistics.execution_count == before + 1000


async def test_an_answer_does_not_wait_for_a_long_execution_behind_it(serve, folder):
    model = await short(serve)

    asked = [model.y(value) for value in (1, 2, 3, -2, 5)]
    tasks = [asyncio.ensure_future(each) for each in asked]
    assert [await task for task in tasks[:3]] == [[2], [3], [4]]
    assert not tasks[3].done()

    (folder / "1" / "go").touch()
    assert [await task for task in tasks[3:]] == [[-1], [6]]
    assert instance(model).ahead == 1  # until it is known to be short again


async def test_a_death_fails_what_the_child_held_and_nothing_else(serve, children):
    model = await short(serve)
    (first,) = children()

    answers = await asyncio.gather(
        *(model.y(-1 if i == 5 else i) for i in range(100)), return_exceptions=True
    )

    failed = [i for i, each in enumerate(answers) if isinstance(each, CoreError)]
    assert 5 in failed
    assert len(failed) <= AHEAD
    assert all(answers[i] == [i + 1] for i in range(100) if i not in failed)
    (second,) = children()
    assert second != first


@pytest.mark.parametrize(
    "more",
    [
        "max_batch_size: 1 dynamic_batching { }",
        "sequence_batching { }",
    ],
)
async def test_where_requests_meet_nothing_is_sent_ahead(serve, more):
    model = await serve(PLUS_ONE, more)

    for i in range(40):
        x = np.full((1, 1) if "max" in more else 1, i, np.float32)
        await model.ask({"x": x}, correlation_id=1, flags=3)

    assert instance(model).ahead == 1


def test_executions_are_short_when_many_were_and_long_when_one_was():
    took = Took()

    for _ in range(16):
        assert not took.short
        took.add(SHORT_NS - 1)
    assert took.short

    took.add(SHORT_NS)
    assert not took.short
