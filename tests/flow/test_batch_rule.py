"""A model, or a plugin, decides which requests form a batch."""

import asyncio

import numpy as np
import pytest

import core
from core import plugins
from core.errors import CoreError
from core.request import InferenceRequest
from core.tensor import Tensor

BATCHING = "dynamic_batching { }"
DELAYED = "dynamic_batching { max_queue_delay_microseconds: 5000 }"


class Double(core.ModelInstance):
    async def execute(self, batch):
        self.model.recorder.batches.append([each.id for each in batch.requests])
        await asyncio.sleep(0.010)
        return {"y": 2 * batch["x"]}


class ByTenant(core.Model):
    """Requests of different tenants do not share a batch; the rule records its calls."""

    asked = ()

    def batch_rule(self):
        tenants, self.asked = set(), []

        def fits(request):
            self.asked.append(request.id)
            tenants.add(request.parameters["tenant"])
            return len(tenants) == 1

        return fits


class Broken(core.Model):
    def batch_rule(self):
        def fits(request):
            return 1 / (request.id != "c")

        return fits


class NotEvenARule(core.Model):
    def batch_rule(self):
        raise RuntimeError("no rule today")


def request(name, tenant="a", rows=1):
    x = Tensor.of("x", np.ones((rows, 1), np.float32))
    return InferenceRequest("m", {"x": x}, id=name, parameters={"tenant": tenant})


async def executed(chain, *requests):
    """The batches that requests become which arrive together, as their ids."""
    replies = [chain.handler(each) for each in requests]
    for reply in replies:
        found = (await reply).output("y").array
        assert found.ravel().tolist() == [2.0] * found.size
    return ["".join(batch) for batch in chain.recorder.batches]


async def test_a_batch_ends_before_the_first_request_that_does_not_fit(serve):
    chain = await serve(Double, BATCHING, model=ByTenant)

    found = await executed(
        chain, *(request(name, tenant) for name, tenant in zip("abcdef", "xxyyxx", strict=True))
    )

    assert found == ["ab", "cd", "ef"]
    await chain.close()


async def test_the_rule_cannot_exceed_the_largest_batch_size(serve):
    chain = await serve(Double, BATCHING, max_batch_size=2, model=ByTenant)

    assert await executed(chain, *map(request, "abcde")) == ["ab", "cd", "e"]
    await chain.close()


async def test_a_request_that_does_not_fit_completes_the_batch(serve):
    chain = await serve(Double, DELAYED, model=ByTenant)
    loop = asyncio.get_running_loop()
    begun = loop.time()

    replies = [chain.handler(request("a", "x")), chain.handler(request("b", "y"))]
    await replies[0]

    assert loop.time() - begun == pytest.approx(0.010)  # of the execution alone
    await replies[1]
    await chain.close()


async def test_a_batch_that_waits_for_more_is_checked_again_from_its_beginning(serve):
    chain = await serve(Double, DELAYED, model=ByTenant)

    first = chain.handler(request("a"))
    await asyncio.sleep(0.001)
    second = chain.handler(request("b"))
    await asyncio.gather(first, second)

    assert chain.recorder.batches == [["a", "b"]]
    assert chain.model.asked == ["a", "b"]
    await chain.close()


async def test_a_first_request_that_the_rule_refuses_runs_alone(serve):
    class AtMostTwo(core.Model):
        def batch_rule(self):
            total = 0

            def fits(request):
                nonlocal total
                if total + len(request.id) > 2:
                    return False
                total += len(request.id)
                return True

            return fits

    chain = await serve(Double, BATCHING, model=AtMostTwo)

    assert await executed(chain, *map(request, ["long", "a", "b", "c"])) == ["long", "ab", "c"]
    await chain.close()


async def test_the_first_request_runs_regardless_of_the_rule(serve):
    class Never(core.Model):
        def batch_rule(self):
            return lambda request: False

    chain = await serve(Double, BATCHING, model=Never)

    assert await executed(chain, *map(request, "abc")) == ["a", "b", "c"]
    await chain.close()


@pytest.mark.parametrize(
    ("model", "batches"), [(Broken, ["ab", "c", "d"]), (NotEvenARule, ["a", "b", "c", "d"])]
)
async def test_an_exception_closes_the_batch_and_is_logged(serve, caplog, model, batches):
    chain = await serve(Double, BATCHING, model=model)

    assert await executed(chain, *map(request, "abcd")) == batches
    assert "the rule for batches of model 'm' failed" in caplog.messages
    await chain.close()


@pytest.mark.parametrize("config", ["", "sequence_batching { oldest { } }"])
async def test_without_dynamic_batching_the_rule_is_not_called(serve, config):
    chain = await serve(Double, config, model=NotEvenARule)
    asked = request("a")
    asked.correlation_id, asked.flags = 1, core.request.SEQUENCE_START | core.request.SEQUENCE_END

    assert await executed(chain, asked) == ["a"]
    await chain.close()


class Plugin:
    def __init__(self, give):
        self.give = give

    @core.hookimpl
    def core_batch_rule(self, model):
        return self.give(model)


@pytest.fixture
def plugin():
    registered = []

    def register(give):
        registered.append(Plugin(give))
        plugins.hooks().register(registered[-1], f"test plugin {len(registered)}")

    yield register
    for each in registered:
        plugins.hooks().unregister(each)


def pairs(model):
    """A rule for two requests at a time."""

    def rule():
        left = [None, None]
        return lambda request: bool(left) and left.pop() is None

    return rule


async def test_a_plugin_gives_rules_to_models_of_others(serve, plugin):
    plugin(pairs)
    chain = await serve(Double, BATCHING)

    assert await executed(chain, *map(request, "abcde")) == ["ab", "cd", "e"]
    await chain.close()


async def test_a_plugin_that_has_none_is_passed_over(serve, plugin):
    plugin(lambda model: None)
    chain = await serve(Double, BATCHING)

    assert await executed(chain, *map(request, "abc")) == ["abc"]
    await chain.close()


async def test_the_rule_of_the_model_goes_before_that_of_a_plugin(serve, plugin):
    plugin(pairs)
    chain = await serve(Double, BATCHING, model=ByTenant)

    assert await executed(chain, *map(request, "abc")) == ["abc"]
    await chain.close()


async def test_a_hook_that_fails_fails_the_load(serve, plugin):
    plugin(lambda model: 1 / 0)

    with pytest.raises(CoreError, match=r"test plugin 1.*core_batch_rule"):
        await serve(Double, BATCHING)


async def test_a_rule_that_would_be_in_another_process_is_missed_aloud(serve, caplog):
    class Isolated(core.Model):
        """Stands in the server for models of a backend that has a rule."""

        @property
        def backend(self):
            found = plugins.HostedBackend(instance=Double)
            found.isolated = core.Backend(model=ByTenant, instance=Double)
            found.isolated.name = "tenants"
            return found

        @backend.setter
        def backend(self, given):
            pass

    chain = await serve(Double, BATCHING, model=Isolated)

    assert await executed(chain, request("a", "x"), request("b", "y")) == ["ab"]
    assert (
        "model 'm' runs in processes of its own: backend 'tenants' has a rule for batches, which cannot be "
        "asked there"
    ) in caplog.messages
    await chain.close()
