"""Requests that loop: their batches, fields, errors, cancellation and deadlines, in virtual time."""

import asyncio

from core.request import SEQUENCE_START

from .conftest import HALVE, STEP_S, X_Z, answer, ask, ensemble, error_of, halving


async def test_too_many_turns_are_an_error_that_names_the_condition(opened, models):
    chain = await opened(halving(loop0_max_turns="3"))

    assert await error_of(ask(chain, 1024)) == (
        "INTERNAL: in ensemble 'e', loop[0]: its condition still holds after 3 turns, the most that "
        "loop[0].max_turns allows: max(z) > 1"
    )
    assert models.calls("halve") == 3
    assert chain.statistics.failures["OTHER"] == 1 and chain.in_flight == 0


async def test_requests_that_loop_at_the_same_time_share_batches(opened, models):
    wait = "dynamic_batching { max_queue_delay_microseconds: 1000 }"
    await models.add("half", "x FP32[2] -> y FP32[2]", lambda x: {"y": x / 2}, batch=8, config=wait)
    text = ensemble(
        "x FP32[2] -> z FP32[2]",
        "half x=x -> y=z",
        batch=8,
        loop0_steps="0",
        loop0_while="any(z > 1)",
        loop0_max_turns="10",
        loop0_carry="z -> x",
    )
    chain = await opened(text)

    found = await asyncio.gather(*(answer(chain, n, 0, shape=(1, 2)) for n in (2, 4, 8, 16)))

    assert found == [{"z": [1, 0]}] * 4
    assert models.chains["half"].rows == [4, 3, 2, 1]


async def test_the_rows_of_one_request_take_the_same_way(opened, models):
    await models.add("half", "x FP32[1] -> y FP32[1]", lambda x: {"y": x / 2}, batch=8)
    parameters = {
        "loop0_steps": "0",
        "loop0_max_turns": "10",
        "loop0_carry": "z -> x",
    }
    shapes = "x FP32[1] -> z FP32[1]", "half x=x -> y=z"
    whole = await opened(ensemble(*shapes, batch=8, loop0_while="any(z > 1)", **parameters))
    apart = await opened(ensemble(*shapes, batch=8, loop0_while="z > 1", **parameters))

    assert await answer(whole, 2, 8, shape=(2, 1)) == {"z": [0.25, 1]}
    assert await error_of(ask(apart, 2, 8, shape=(2, 1))) == (
        "INVALID: in ensemble 'e', loop[0]: turn 1, the condition for another turn of loop[0]: "
        "z > 1: the value of shape [2, 1] has true and false elements; all rows of a request take "
        "the same way: write any(…) or all(…)"
    )


async def test_an_error_names_turn_step_and_model(opened, models):
    await models.add(
        "fragile",
        "x FP32[-1] -> y FP32[-1]",
        lambda x: ValueError("too small") if x.max() < 3 else {"y": x / 2},
    )
    chain = await opened(halving().replace('"halve"', '"fragile"'))

    text = await error_of(ask(chain, 8))

    assert text.startswith("INTERNAL: in ensemble 'e', loop[0]: turn 3, step 0 (model 'fragile'): ")
    assert "too small" in text
    assert chain.in_flight == 0


async def test_a_cancelled_request_starts_no_further_turn(opened, models):
    chain = await opened(halving(loop0_max_turns="1000"))
    reply = ask(chain, 1e30)
    await asyncio.sleep(2.5 * STEP_S)

    reply.cancel()

    assert await error_of(reply) == (
        "CANCELLED: in ensemble 'e', loop[0]: turn 3, request was cancelled"
    )
    assert models.calls("halve") == 3
    await asyncio.sleep(1)
    assert models.calls("halve") == 3
    assert chain.in_flight == 0 and chain.statistics.failures["CANCELED"] == 1


async def test_a_request_may_be_cancelled_between_turns(opened, models, monkeypatch):
    chain = await opened(halving(loop0_max_turns="1000"))
    loop = asyncio.get_running_loop()
    call_soon = loop.call_soon
    reply = ask(chain, 1e30)

    def cancelled_first(function, *args, **kwargs):
        if getattr(function, "__name__", "") == "_turn" and len(models.turns) == 2:
            call_soon(reply.cancel)
        return call_soon(function, *args, **kwargs)

    monkeypatch.setattr(loop, "call_soon", cancelled_first)

    assert await error_of(reply) == "CANCELLED: in ensemble 'e', loop[0]: request was cancelled"
    assert models.calls("halve") == 2
    assert chain.in_flight == 0


async def test_a_deadline_ends_a_loop_between_turns(opened, models):
    chain = await opened(halving(loop0_max_turns="1000"))
    text = await error_of(ask(chain, 1e30, deadline_ns=1))

    assert text.startswith(
        "DEADLINE_EXCEEDED: in ensemble 'e', loop[0]: Deadline Exceeded after 0 turns"
    )
    assert models.calls("halve") == 0
    assert chain.statistics.failures["DEADLINE"] == 1


async def test_turns_that_are_answered_at_once_neither_recurse_nor_occupy_the_event_loop(
    opened, models
):
    """A loop without a step that waits: its only step is always skipped."""
    text = ensemble(
        X_Z,
        HALVE,
        loop0_steps="0",
        loop0_max_turns="5000",
        loop0_carry="z -> x",
        loop0_else="x -> z",
        step0_if="max(x) > 100",
    )
    chain = await opened(text)
    others = 0

    async def beside():
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(beside())
    assert await answer(chain, 1) == {"z": [1]}
    task.cancel()
    assert others > 1000


async def test_parameters_and_priority_of_the_request_go_to_each_turn(opened, models):
    chain = await opened(halving())

    await ask(chain, 8, id="r", priority=0, parameters={"seed": 7})

    assert [(each.id, each.parameters) for each in models.asked] == [("r", {"seed": 7})] * 3


async def test_the_steps_of_a_loop_are_no_requests_of_the_sequence(opened, models):
    chain = await opened(halving())

    assert await answer(chain, 4, correlation_id=7, flags=SEQUENCE_START) == {"z": [1]}
    assert [(each.correlation_id, each.flags) for each in models.asked] == [(0, 0)] * 2
