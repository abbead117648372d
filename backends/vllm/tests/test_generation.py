"""Outputs of vLLM → events: texts, log probabilities, ends, cancellations. vLLM itself is not needed."""

import asyncio
from types import SimpleNamespace

import pytest
from backend_vllm.generation import VllmGeneration
from core_generate import Logprob

from core.errors import CoreError, Kind


def output(text="", tokens=(), finish=None, logprobs=None, cached=0, stop=None):
    part = SimpleNamespace(
        text=text, token_ids=tokens, finish_reason=finish, logprobs=logprobs, stop_reason=stop
    )
    return SimpleNamespace(
        outputs=[part],
        finished=finish is not None,
        prompt_token_ids=[1, 2, 3],
        num_cached_tokens=cached,
    )


async def ran(outputs, alternatives=0, act=None):
    """Return the events of these outputs, and whether vLLM's generator was closed."""
    events, ended, closed = [], [], []
    loop = asyncio.get_running_loop()
    generation = VllmGeneration(events.append, alternatives, loop, ended.append)

    async def begin():
        try:
            for each in outputs:
                if isinstance(each, BaseException):
                    raise each
                yield each
                await asyncio.sleep(0)
        finally:
            closed.append(True)

    generation.start(begin)
    if act is not None:
        await act(generation)
    for _ in range(100):
        if ended:
            break
        await asyncio.sleep(0)
    assert ended == [generation]
    return events, bool(closed)


def test_each_output_is_an_event_with_the_counts_of_the_prompt():
    outputs = [output("a", [5], cached=2), output("bc", (6, 7), "length", cached=2)]

    events, closed = asyncio.run(ran(outputs))

    assert [each.text for each in events] == ["a", "bc"]
    assert [list(each.tokens) for each in events] == [[5], [6, 7]]
    assert [each.finish for each in events] == ["", "length"]
    assert [(each.prompt_tokens, each.cached_tokens, each.count) for each in events] == [
        (3, 2, 1),
        (3, 2, 2),
    ]
    assert closed


def entry(logprob, rank, text):
    return SimpleNamespace(logprob=logprob, rank=rank, decoded_token=text)


def test_the_token_has_its_log_probability_and_the_most_likely_ones():
    found = {5: entry(-3.0, 9, "e"), 1: entry(-0.5, 1, "a"), 2: entry(float("-inf"), 2, None)}

    (event,), _ = asyncio.run(ran([output("e", [5], "stop", [found])], alternatives=2))

    assert event.logprobs == (
        Logprob(5, "e", -3.0, (Logprob(1, "a", -0.5), Logprob(2, "", -9999.0))),
    )


@pytest.mark.parametrize(("stop", "named"), [("END", "END"), (7, ""), (None, "")])
def test_the_stop_string_is_named_and_no_stop_token(stop, named):
    (event,), _ = asyncio.run(ran([output("a", [5], "stop", stop=stop)]))

    assert (event.finish, event.stop) == ("stop", named)


def test_without_alternatives_only_the_token_is_reported():
    found = {5: entry(-3.0, 9, "e"), 1: entry(-0.5, 1, "a")}

    (event,), _ = asyncio.run(ran([output("e", [5], "stop", [found])]))

    assert event.logprobs == (Logprob(5, "e", -3.0),)


@pytest.mark.parametrize(
    ("reason", "finish"), [("stop", "stop"), ("length", "length"), ("repetition", "stop")]
)
def test_a_reason_of_vllm_is_one_of_two(reason, finish):
    (event,), _ = asyncio.run(ran([output("a", [5], reason)]))

    assert event.finish == finish


@pytest.mark.parametrize(("reason", "kind"), [("abort", Kind.CANCELLED), ("error", Kind.INTERNAL)])
def test_other_reasons_are_errors(reason, kind):
    (event,), _ = asyncio.run(ran([output("", (), reason)]))

    assert isinstance(event, CoreError)
    assert event.kind is kind


def test_a_cancelled_generation_emits_nothing_more_and_ends_the_request_in_vllm():
    async def cancel(generation):
        await asyncio.sleep(0)
        generation.cancel()
        generation.cancel()

    many = [output("a", [5]) for _ in range(50)]

    events, closed = asyncio.run(ran(many, act=cancel))

    assert len(events) < 5
    assert closed


def test_a_generation_that_is_cancelled_before_it_starts_asks_vllm_nothing():
    async def act():
        asked, ended = [], []
        generation = VllmGeneration(
            asked.append, 0, asyncio.get_running_loop(), lambda each: ended.append(each)
        )
        generation.cancel()
        generation.start(lambda: asked.append("asked"))
        await asyncio.sleep(0)
        return asked, ended

    asked, ended = asyncio.run(act())

    assert asked == []
    assert len(ended) == 1
