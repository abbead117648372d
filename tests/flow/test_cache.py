"""The response cache, as a layer before the scheduler."""

import asyncio
import random
import threading

import numpy as np
import pytest

import core
from core.caches import LocalCache, open_cache
from core.errors import CoreError
from core.options import Options
from core.pipeline import cache as room
from core.request import InferenceRequest, RequestedOutput
from core.tensor import Tensor

ENABLED = "response_cache { enable: true }"


class Count(core.ModelInstance):
    """y is x plus the number of executions before; fails below zero."""

    async def execute(self, batch):
        self.model.recorder.batches.append(1)
        await asyncio.sleep(0.010)
        if (batch["x"] < 0).any():
            raise ValueError("below zero")
        return {"y": batch["x"] + len(self.model.recorder.batches) * 100}


def ask(chain, *values, shape=None, **kwargs):
    array = np.array(values, np.float32).reshape(shape or (1, -1))
    return chain.handler(InferenceRequest("m", {"x": Tensor.of("x", array)}, **kwargs))


async def y(reply):
    return (await reply).output("y").array.ravel().tolist()


async def test_an_equal_request_gets_the_same_answer_without_an_execution(serve):
    chain = await serve(Count, ENABLED, cache=LocalCache(10_000))

    first, second = await y(ask(chain, 1, 2)), await y(ask(chain, 1, 2))

    assert first == second
    found = chain.statistics
    assert (found.cache_hit.count, found.cache_miss.count) == (1, 1)
    assert (found.success.count, found.inference_count, found.execution_count) == (2, 1, 1)
    assert (found.queue.count, found.compute_infer.count) == (2, 1)
    assert chain.in_flight == 0


async def test_preserve_ordering_keeps_answers_of_the_cache_in_order_too(serve):
    ordered = ENABLED + " dynamic_batching { preserve_ordering: true }"
    chain = await serve(Count, ordered, cache=LocalCache(10_000))
    await ask(chain, 1)
    order = []

    for name, value in (("computed", 2), ("cached", 1), ("computed later", 3)):
        ask(chain, value).listen(lambda item, final, name=name: order.append(name))
    await asyncio.sleep(0.1)

    assert order == ["computed", "cached", "computed later"]
    assert chain.statistics.cache_hit.count == 1
    assert chain.in_flight == 0


LARGE = np.arange(room.LARGE_BYTES // 4 + 1, dtype=np.float32)


async def test_the_key_of_a_large_request_is_made_on_another_thread(serve, monkeypatch):
    threads, key_of = [], room.cache_key

    def noted(*args):
        threads.append(threading.current_thread())
        return key_of(*args)

    monkeypatch.setattr(room, "cache_key", noted)
    cache = LocalCache(10 * LARGE.nbytes)
    chain = await serve(Count, ENABLED, cache=cache)

    first = await y(ask(chain, *LARGE, 0))
    while not len(cache):
        await asyncio.sleep(0.001)
    second, other = [await y(ask(chain, *LARGE, change)) for change in (0, 1)]

    assert first == second != other
    assert threading.main_thread() not in threads and len(threads) == 3
    assert (chain.statistics.cache_hit.count, chain.statistics.cache_miss.count) == (1, 2)
    assert chain.in_flight == 0


async def test_a_large_answer_is_copied_on_another_thread(serve, monkeypatch):
    threads, copies_of = [], room._copies

    def noted(outputs):
        threads.append(threading.current_thread())
        return copies_of(outputs)

    monkeypatch.setattr(room, "_copies", noted)
    cache = LocalCache(2 * LARGE.nbytes)
    chain = await serve(Count, ENABLED, cache=cache)

    first = await y(ask(chain, *LARGE))
    while not len(cache):
        await asyncio.sleep(0.001)

    assert await y(ask(chain, *LARGE)) == first
    assert len(threads) == 1 and threads[0] is not threading.main_thread()
    assert cache.counters.hits == 1


async def test_a_large_answer_that_the_cache_cannot_hold_is_not_copied(serve, monkeypatch):
    monkeypatch.setattr(room, "_copies", lambda outputs: pytest.fail("a copy is made"))
    chain = await serve(Count, ENABLED, cache=LocalCache(LARGE.nbytes // 2))

    first, second = await y(ask(chain, *LARGE)), await y(ask(chain, *LARGE))

    assert first != second


async def test_a_large_request_cancelled_before_its_key_is_computed_never_reaches_the_model(
    serve, monkeypatch
):
    goes_on, key_of = threading.Event(), room.cache_key
    monkeypatch.setattr(room, "cache_key", lambda *args: goes_on.wait(10) and key_of(*args))
    chain = await serve(Count, ENABLED, cache=LocalCache(10 * LARGE.nbytes))

    reply = ask(chain, *LARGE)
    reply.cancel()
    goes_on.set()

    with pytest.raises(CoreError, match="cancel"):
        await reply
    assert chain.statistics.execution_count == 0
    assert chain.in_flight == 0


async def test_a_large_request_whose_key_cannot_be_computed_fails(serve, monkeypatch):
    def broken(*args):
        raise ValueError("the device is gone")

    monkeypatch.setattr(room, "cache_key", broken)
    chain = await serve(Count, ENABLED, cache=LocalCache(10 * LARGE.nbytes))

    with pytest.raises(CoreError, match=r"no key for the response cache .* the device is gone"):
        await ask(chain, *LARGE)
    assert chain.in_flight == 0
    assert sum(chain.statistics.failures.values()) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"values": (1, 3)},
        {"shape": (2, 1)},
        {"parameters": {"temperature": 1.0}},
        {"outputs": (RequestedOutput("y"),)},
        {"outputs": (RequestedOutput("y", class_count=1),)},
    ],
)
async def test_requests_that_differ_in_a_relevant_field_have_different_keys(serve, other):
    chain = await serve(Count, ENABLED, cache=LocalCache(10_000))
    values = other.pop("values", (1, 2))
    await ask(chain, 1, 2)

    await ask(chain, *values, **other)

    assert chain.statistics.cache_hit.count == 0


async def test_the_id_of_an_answer_is_that_of_its_request(serve):
    chain = await serve(Count, ENABLED, cache=LocalCache(10_000))
    await ask(chain, 1, id="first")

    assert (await ask(chain, 1, id="second", priority=2, timeout_us=9)).id == "second"
    assert chain.statistics.cache_hit.count == 1


async def test_errors_are_not_kept(serve):
    chain = await serve(Count, ENABLED, cache=LocalCache(10_000))

    for _ in range(2):
        with pytest.raises(CoreError, match="below zero"):
            await ask(chain, -1)

    assert chain.statistics.execution_count == 2


@pytest.mark.parametrize("config,cache", [("", LocalCache(10_000)), (ENABLED, None)])
async def test_both_the_model_and_the_server_must_want_it(serve, config, cache):
    chain = await serve(Count, config, cache=cache)

    assert await y(ask(chain, 1)) != await y(ask(chain, 1))
    assert chain.statistics.cache_miss.count == 0


def outputs(size):
    return [Tensor.of("y", np.zeros(size, np.uint8))]


def test_the_least_recently_used_entry_is_evicted_first():
    cache = LocalCache(3 * (100 + 512))
    for key in (b"a", b"b", b"c"):
        cache.insert(key, outputs(100))
    cache.lookup(b"a")

    cache.insert(b"d", outputs(100))

    assert [cache.lookup(key) is not None for key in (b"a", b"b", b"c", b"d")] == [
        True,
        False,
        True,
        True,
    ]
    assert cache.counters.evictions == 1


def test_a_response_larger_than_the_cache_is_not_stored():
    cache = LocalCache(1000)

    cache.insert(b"a", outputs(900))

    assert len(cache) == cache.used == 0


def test_used_bytes_never_pass_the_size():
    chance, cache = random.Random(0), LocalCache(20_000)
    for number in range(2000):
        cache.insert(number.to_bytes(2, "big"), outputs(chance.randrange(5000)))
        assert cache.used <= cache.size
        assert cache.used == sum(size for _, size in cache._entries.values())


def test_kept_outputs_are_copies():
    cache, array = LocalCache(10_000), np.zeros(4, np.uint8)
    cache.insert(b"a", [Tensor.of("y", array)])

    array[:] = 7

    assert cache.lookup(b"a")[0].array.tolist() == [0, 0, 0, 0]


def test_the_option_makes_the_cache():
    assert open_cache(Options.defaults().cache_config) is None
    assert open_cache({"local": {"size": "1024"}}).size == 1024


@pytest.mark.parametrize(
    "config", [{"other": {"host": "x"}}, {"local": {}}, {"local": {"size": "x"}}]
)
def test_a_wrong_option_is_refused_with_the_expected_form(config):
    with pytest.raises(CoreError, match="try --cache-config=local,size=N"):
        open_cache(config)
