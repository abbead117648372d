"""Where instances run, on a real loop with real threads."""

import asyncio
import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import core
from core import config as configuration
from core.pipeline import ChainServices, open_chain
from core.pipeline.instances.rate_limiter import RateLimiter
from core.request import InferenceRequest
from core.system.host_policy import HostPolicies
from core.system.platform import PORTABLE
from core.tensor import Tensor


async def open_model(instance, config="", limiter=None, policies=None):
    message = configuration.parse_text(
        'name: "m" backend: "test" max_batch_size: 4 '
        'input [ { name: "x" data_type: TYPE_INT32 dims: [ 1 ] } ] '
        f'output [ {{ name: "y" data_type: TYPE_INT32 dims: [ 1 ] }} ] {config}',
        "test",
    )
    configuration.normalise(message, {}, [])
    model = core.Model()
    model.config, model.backend = message, core.Backend(instance=instance)
    model.places = []
    return model, await open_chain(
        model,
        configuration.signature_of(message, Path(), 1),
        ChainServices(asyncio.get_running_loop(), limiter=limiter, policies=policies),
    )


def ask(chain, value):
    return chain.handler(
        InferenceRequest("m", {"x": Tensor.of("x", np.array([[value]], np.int32))})
    )


class Placed(core.ModelInstance):
    """Notes the thread of each call."""

    def open(self):
        self.note("open")

    def execute(self, batch):
        self.note("execute")
        return {"y": batch["x"]}

    def close(self):
        self.note("close")

    def note(self, what):
        self.model.places.append((what, threading.current_thread().name))


async def test_open_execute_and_close_share_the_thread_of_the_instance():
    model, chain = await open_model(Placed)
    await ask(chain, 1)
    await chain.close()

    assert model.places == [("open", "m_0"), ("execute", "m_0"), ("close", "m_0")]


async def test_an_inline_instance_executes_on_the_loop():
    class Inline(Placed):
        placement = "inline"

    model, chain = await open_model(Inline)
    await ask(chain, 1)
    await chain.close()

    assert ("execute", threading.main_thread().name) in model.places


@pytest.fixture
def bound():
    """The last core that this process may use, and a host policy for CPU instances that names it."""
    core_number = max(os.sched_getaffinity(0))
    return core_number, HostPolicies({"cpu": {"cpu-cores": f"{core_number}-{core_number}"}})


class Bound(Placed):
    """Notes the thread of each call, and the cores that it may use."""

    def note(self, what):
        thread = threading.current_thread().name
        self.model.places.append((what, thread, *os.sched_getaffinity(0)))


@pytest.mark.parametrize("placement", ["thread", "inline", "auto"])
@pytest.mark.skipif(PORTABLE, reason="only Linux binds threads to cores")
async def test_an_instance_with_a_host_policy_runs_on_a_separate_thread_and_its_cores(
    bound, placement
):
    number, policies = bound
    before = os.sched_getaffinity(0)
    chosen = type("Chosen", (Bound,), {"placement": placement})

    model, chain = await open_model(chosen, policies=policies)
    for _ in range(40):  # so many short ones would bring an "auto" to the loop
        await ask(chain, 1)
    await chain.close()

    assert set(model.places) == {(what, "m_0", number) for what in ("open", "execute", "close")}
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(PORTABLE, reason="only Linux binds threads to cores")
async def test_an_instance_knows_its_host_policy(bound):
    number, policies = bound
    seen = []

    class Looks(Placed):
        def open(self):
            seen.append(self.host_policy)

    _, chain = await open_model(Looks, policies=policies)
    await chain.close()

    (found,) = seen
    assert (found.name, found.cores) == ("cpu", {number})
    assert found.settings == {"cpu-cores": f"{number}-{number}"}


@pytest.mark.skipif(PORTABLE, reason="only Linux binds threads to cores")
async def test_a_host_policy_that_the_loop_cannot_apply_is_logged(bound, caplog):
    class Coroutine(Placed):
        async def execute(self, batch):
            return {"y": batch["x"]}

    _, chain = await open_model(Coroutine, policies=bound[1])
    await ask(chain, 1)
    await chain.close()

    assert "host policy 'cpu' has no effect on instance 'm_0'" in caplog.text


async def test_cores_that_the_system_refuses_fail_the_load():
    policies = HostPolicies({"cpu": {"cpu-cores": "1023-1023"}}, frozenset([1023]))

    with pytest.raises(core.CoreError, match="host policy 'cpu': a thread cannot be bound"):
        await open_model(Placed, policies=policies)


class Elsewhere(Placed):
    """Its executions end on command of the test."""

    placement = "callback"

    def begin(self, batch, done):
        self.note("begin")
        if batch["x"][0] < 0:
            raise ValueError("negative")
        self.model.begun = getattr(self.model, "begun", [])
        self.model.begun.append((batch, done))


async def test_a_callback_instance_starts_one_batch_at_a_time_on_the_loop():
    model, chain = await open_model(Elsewhere)
    replies = [ask(chain, value) for value in (1, 2)]

    assert model.places[1:] == [("begin", threading.main_thread().name)]
    for reply in replies:
        batch, done = model.begun.pop()
        batch.respond(0, {"y": batch["x"]})
        done(None)
        assert (await reply).output("y").array.tolist() == batch["x"].tolist()
    assert not model.begun
    assert chain.statistics.execution_count == 2
    await chain.close()


async def test_a_callback_instance_may_start_several_batches_ahead():
    class Ahead(Elsewhere):
        ahead = 3

    model, chain = await open_model(Ahead)
    replies = [ask(chain, value) for value in range(5)]
    assert [batch["x"][0, 0] for batch, _ in model.begun] == [0, 1, 2]

    for at_ns, reply in enumerate(replies, start=10):
        batch, done = model.begun.pop(0)
        batch.compute_start_ns, batch.compute_end_ns = at_ns, at_ns + 1
        batch.start_ns = at_ns - 9  # sent together with the first
        batch.respond(0, {"y": batch["x"]})
        done(None)
        assert (await reply).output("y").array.tolist() == batch["x"].tolist()

    statistics = chain.statistics
    assert statistics.execution_count == 5
    assert statistics.compute_input.ns == 9  # of the first; the others waited for their turn
    await chain.close()


async def test_a_rate_limit_prevents_batches_from_starting_ahead():
    class Ahead(Elsewhere):
        ahead = 3

    limiter = RateLimiter({})
    model, chain = await open_model(Ahead, "instance_group { count: 1 }", limiter)
    replies = [ask(chain, value) for value in range(3)]

    for reply in replies:
        ((batch, done),) = model.begun
        model.begun.clear()
        batch.respond(0, {"y": batch["x"]})
        done(None)
        await reply
    await chain.close()


async def test_respond_all_skips_requests_that_have_a_response():
    model, chain = await open_model(Elsewhere, "dynamic_batching { }")
    replies = [ask(chain, value) for value in (1, 2, 3)]
    await asyncio.sleep(0)
    ((batch, done),) = model.begun

    batch.fail(1, "refused")
    batch.respond_all([[Tensor.of("y", np.array([[value]], np.int32))] for value in (4, 5, 6)])
    done(None)

    found = await asyncio.gather(*replies, return_exceptions=True)
    assert found[1].message == "refused"
    assert [found[i].output("y").array.tolist() for i in (0, 2)] == [[[4]], [[6]]]
    await chain.close()


async def test_a_batch_notifies_its_listener_of_each_cancelled_request():
    model, chain = await open_model(Elsewhere, "dynamic_batching { }")
    replies = [ask(chain, value) for value in (1, 2)]
    await asyncio.sleep(0)
    ((batch, done),) = model.begun
    told = []
    batch.on_cancel(lambda: told.append([request.cancelled for request in batch.requests]))

    replies[1].cancel()
    replies[0].cancel()

    assert told == [[False, True], [True, True]]
    done(KeyError("over"))
    await chain.close()


@pytest.mark.parametrize("value,text", [(-1, "ValueError: negative"), (1, "KeyError: 'later'")])
async def test_an_error_of_a_callback_instance_fails_only_its_batch(value, text):
    model, chain = await open_model(Elsewhere)
    reply = ask(chain, value)
    if value > 0:
        _, done = model.begun.pop()
        done(KeyError("later"))

    with pytest.raises(core.CoreError) as error:
        await reply
    assert error.value.message.endswith(text)

    reply = ask(chain, 2)
    batch, done = model.begun.pop()
    batch.respond(0, {"y": batch["x"]})
    done(None)
    await reply
    await chain.close()


async def test_a_coroutine_executes_on_the_loop():
    class Coroutine(Placed):
        async def execute(self, batch):
            self.note("execute")
            await asyncio.sleep(0)
            return {"y": batch["x"]}

    model, chain = await open_model(Coroutine)

    assert (await ask(chain, 5)).output("y").array.tolist() == [[5]]
    assert ("execute", threading.main_thread().name) in model.places
    await chain.close()


async def test_threads_end_with_their_chain():
    before = set(threading.enumerate())
    _, chain = await open_model(Placed, "instance_group [ { count: 3 kind: KIND_CPU } ]")
    assert (
        len([t for t in threading.enumerate() if t not in before and t.name.startswith("m_")]) == 3
    )

    await chain.close()

    assert not [t for t in threading.enumerate() if t not in before and t.name.startswith("m_")]


async def test_a_failing_open_leaves_no_thread():
    class Failing(Placed):
        def open(self):
            raise MemoryError("no")

    before = set(threading.enumerate())
    with pytest.raises(
        core.CoreError, match=r"open\(\) at \S+test_runner\.py:\d+: MemoryError: no"
    ):
        await open_model(Failing)
    gc.collect()

    for _ in range(100):
        left = [t for t in threading.enumerate() if t not in before and t.name.startswith("m_")]
        if not left:
            break
        await asyncio.sleep(0.01)
    assert not left


@pytest.mark.parametrize("turns", range(4))
async def test_a_cancelled_open_leaves_no_thread(turns):
    """The event loop does not wait for the start of the thread: a load may be cancelled before it."""
    opening = asyncio.ensure_future(open_model(Placed))
    for _ in range(turns):
        await asyncio.sleep(0)

    opening.cancel()
    await asyncio.wait([opening])

    for _ in range(1000):
        if not any(each.name == "m_0" for each in threading.enumerate()):
            return
        await asyncio.sleep(0.01)
    pytest.fail("the thread of the instance waits for work")


async def test_many_requests_over_several_threads_get_their_own_answers():
    _, chain = await open_model(
        Placed, "dynamic_batching { } instance_group [ { count: 2 kind: KIND_CPU } ]"
    )

    replies = [ask(chain, number) for number in range(2000)]

    assert [(await r).output("y").array[0, 0] for r in replies] == list(range(2000))
    await chain.close()


async def test_responses_of_another_thread_arrive():
    class Elsewhere(core.ModelInstance):
        def execute(self, batch):
            batch.defer(0)
            x = batch["x"]
            threading.Timer(0.01, lambda: batch.respond(0, {"y": x})).start()

    _, chain = await open_model(Elsewhere)

    assert (await ask(chain, 8)).output("y").array.tolist() == [[8]]
    await chain.close()


@pytest.mark.parametrize("placement", ["thread", "inline"])
async def test_a_model_that_raises_system_exit_only_fails_its_request(placement):
    class Leaving(core.ModelInstance):
        def execute(self, batch):
            if batch["x"][0, 0] == 1:
                raise SystemExit(3)
            return {"y": batch["x"]}

    Leaving.placement = placement
    _, chain = await open_model(Leaving)

    with pytest.raises(core.CoreError, match="SystemExit: 3"):
        await ask(chain, 1)
    assert (await ask(chain, 2)).output("y").array.tolist() == [[2]]
    await chain.close()


@pytest.mark.parametrize("placement", ["thread", "inline"])
async def test_a_model_that_raises_system_exit_in_open_fails_its_load(placement):
    class Leaving(core.ModelInstance):
        def open(self):
            raise SystemExit("not today")

    Leaving.placement = placement
    with pytest.raises(core.CoreError, match="SystemExit: not today"):
        await open_model(Leaving)
