"""Ensembles with a decoupled step: each of its responses walks through the next steps, in virtual time."""

import asyncio
import weakref

import numpy as np
from flow.ensembles import IO, ask, step, z

import core


async def test_each_response_of_a_decoupled_step_runs_the_next_steps(ensemble):
    chain = await ensemble(
        [step("each", "x", "a"), step("add", "a", "b"), step("add", "b", "z")], decoupled=True
    )

    answers = [z(response) async for response in ask(chain, 1, 5, 9)]

    assert sorted(answers) == [[3], [7], [11]]
    assert chain.statistics.success.count == 1
    assert chain.in_flight == 0


async def test_a_decoupled_step_without_responses_ends_the_request(ensemble):
    chain = await ensemble([step("each", "x", "a"), step("add", "a", "z")], decoupled=True)

    assert [response async for response in ask(chain)] == []


async def test_an_answer_of_a_decoupled_step_meets_tensors_that_come_later(ensemble):
    """w comes after 10 ms, the answers of `each` after 1 ms and 2 ms."""
    io = IO.replace("output [", 'output [ { name: "w" data_type: TYPE_FP32 dims: [ -1 ] },')
    chain = await ensemble([step("add", "x", "w"), step("each", "x", "z")], io, decoupled=True)

    answers = [(z(r), z(r, "w")) async for r in ask(chain, 1, 5)]

    assert sorted(answers) == [([1], [2, 6]), ([5], [2, 6])]


async def test_tensors_of_a_streamed_response_are_freed_with_it(ensemble, serve):
    """A stream of thousands of responses must not hold all their tensors until its end."""
    chain = await ensemble([step("each", "x", "a"), step("add", "a", "z")], decoupled=True)
    made, alive = [], []

    class Watched(core.ModelInstance):
        async def execute(self, batch):
            for value in batch.requests[0].inputs["x"].array:
                await asyncio.sleep(0.015)  # slower than `add`
                y = np.array([value], np.float32)
                made.append(weakref.ref(y))
                batch.respond(0, {"y": y}, final=False)
                del y
                chain.asked.clear()
                alive.append(sum(each() is not None for each in made))
            batch.finish(0)

    chain.models["each"] = await serve(Watched, max_batch_size=0, decoupled=True)
    answers = 0
    async for _ in ask(chain, *range(200)):
        answers += 1

    assert answers == 200
    assert max(alive) < 5
