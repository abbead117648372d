"""When latencies are counted one by one: first answers, phases, answers of the cache; in virtual time."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

import core
from core import config as configuration
from core.caches import LocalCache
from core.config import ModelConfig
from core.errors import CoreError
from core.pipeline import ChainServices
from core.pipeline.ensemble import EnsembleChain, StepModels, steps_of
from core.request import InferenceRequest
from core.telemetry.metrics.detailed import statistics_of
from core.telemetry.metrics.settings import MetricSettings
from core.tensor import Tensor

SETTINGS = MetricSettings(histograms=True, summaries=True)
FIRST_MS = (15.0, 35.0, 100.0)


@pytest.fixture
def detailed():
    """Return statistics whose buckets of first responses are FIRST_MS, on the loop's clock."""

    def make(decoupled=False):
        config = ModelConfig()
        config.model_transaction_policy.decoupled = decoupled
        control = config.model_metrics.metric_control.add()
        control.metric_identifier.family = "nv_inference_first_response_histogram_ms"
        control.histogram_options.buckets.extend(FIRST_MS)
        return statistics_of(SETTINGS, config, asyncio.get_running_loop().time_ns)

    return make


class Stream(core.ModelInstance):
    """For each value of x an answer, after that many milliseconds; fails below zero."""

    async def execute(self, batch):
        for value in batch.requests[0].inputs["x"].array.ravel():
            if value < 0:
                raise ValueError("below zero")
            await asyncio.sleep(float(value) / 1000)
            batch.respond(0, {"y": np.array([value], np.float32)}, final=False)
        batch.finish(0)


class Sleep(core.ModelInstance):
    """One answer after 20 ms."""

    async def execute(self, batch):
        await asyncio.sleep(0.020)
        return {"y": batch["x"]}


class Again(core.ModelInstance):
    """Three answers, one for each execution of 10 ms."""

    def open(self):
        self.runs = 0

    async def execute(self, batch):
        await asyncio.sleep(0.010)
        self.runs += 1
        batch.respond(0, {"y": batch.requests[0].inputs["x"].array}, final=self.runs == 3)
        if self.runs < 3:
            batch.reschedule(0)


def ask(chain, *values):
    x = Tensor.of("x", np.array(values, np.float32))
    return chain.handler(InferenceRequest(chain.signature.name, {"x": x}))


async def answers(reply):
    return [answer async for answer in reply]


async def test_the_first_response_of_a_stream_is_timed(serve, detailed):
    chain = await serve(Stream, max_batch_size=0, decoupled=True, statistics=detailed(True))

    await answers(ask(chain, 10, 500))
    await answers(ask(chain, 30))

    assert chain.statistics.first_response.counts() == [1, 1, 0, 0]
    assert chain.statistics.success.count == 2


async def test_a_stream_without_answers_has_no_first_one(serve, detailed):
    chain = await serve(Stream, max_batch_size=0, decoupled=True, statistics=detailed(True))

    await answers(ask(chain))
    await answers(ask(chain, -1))

    assert chain.statistics.first_response.counts() == [0, 0, 0, 0]


async def test_a_rescheduled_request_has_one_first_response(serve, detailed):
    iterative = "sequence_batching { iterative_sequence: true }"
    statistics = detailed(True)
    chain = await serve(Again, iterative, max_batch_size=0, decoupled=True, statistics=statistics)

    assert len(await answers(ask(chain, 1))) == 3

    assert statistics.first_response.counts() == [1, 0, 0, 0]


async def test_without_a_stream_the_only_answer_is_the_first(serve, detailed):
    chain = await serve(Sleep, max_batch_size=0, statistics=detailed())

    await ask(chain, 1)

    assert chain.statistics.first_response.counts() == [0, 1, 0, 0]
    assert chain.statistics.phases()["compute_infer"].histogram.sum_ns == 20_000_000


async def test_an_answer_of_the_cache_counts_as_a_fast_request(serve, detailed):
    cache, config = LocalCache(10_000), "response_cache { enable: true }"
    chain = await serve(Sleep, config, max_batch_size=0, cache=cache, statistics=detailed())

    await ask(chain, 1)
    await ask(chain, 1)

    phases = chain.statistics.phases()
    assert phases["request"].spread.count == phases["queue"].spread.count == 2
    assert phases["compute_infer"].spread.count == 1
    assert phases["cache_hit"].spread.count == phases["cache_miss"].spread.count == 1
    assert chain.statistics.first_response.counts() == [1, 1, 0, 0]


@pytest.fixture
def streaming(serve, detailed):
    """Return an ensemble of one streaming step; `asked` are the requests to the step."""

    async def make():
        step = await serve(Stream, max_batch_size=0, decoupled=True)
        config = configuration.parse_text(
            """name: "e" platform: "ensemble"
            input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
            output [ { name: "z" data_type: TYPE_FP32 dims: [ -1 ] } ]
            model_transaction_policy { decoupled: true }
            ensemble_scheduling { step [ { model_name: "m" model_version: -1
              input_map { key: "x" value: "x" } output_map { key: "y" value: "z" } } ] }""",
            "test",
        )
        configuration.normalise(config, {}, [])
        asked = []

        def infer(request):
            asked.append(request)
            return step.handler(request)

        loop = asyncio.get_running_loop()
        chain = EnsembleChain(
            config,
            configuration.signature_of(config, Path(), 1),
            steps_of(config),
            StepModels(infer, lambda: True, step.check),
            ChainServices(loop, loop.time_ns),
            statistics=detailed(True),
        )
        chain.asked = asked
        return chain

    return make


async def test_the_first_answer_of_an_ensemble_that_streams_is_counted(streaming):
    chain = await streaming()

    found = await answers(ask(chain, 30, 10))
    (error,) = await answers(ask(chain, -1))

    assert [answer.output("z").array.tolist() for answer in found] == [[30], [10]]
    assert isinstance(error, CoreError) and "below zero" in error.message
    assert chain.statistics.first_response.counts() == [0, 1, 0, 0]
    assert chain.in_flight == 0


async def test_a_timed_decoupled_ensemble_can_be_cancelled(streaming):
    chain = await streaming()
    reply = ask(chain, 10_000)
    await asyncio.sleep(0.001)

    reply.cancel()
    await asyncio.sleep(0.001)

    assert [request.cancelled for request in chain.asked] == [True]
