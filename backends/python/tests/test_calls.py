"""Calls of a model to the server: custom metrics."""

import asyncio
import os
import signal

import numpy as np
import pytest

from core.telemetry.registry import registry

MODES = ["process", "thread", "inline"]
EVERY_MODE = [*MODES, "shared"]
METRICS = """
    def initialize(self, args):
        self.counters = pb_utils.MetricFamily(
            name="items", description="Items", kind=pb_utils.MetricFamily.COUNTER)
        self.counter = self.counters.Metric(labels={"kind": "a"})
        self.levels = pb_utils.MetricFamily("level", "Level", pb_utils.MetricFamily.GAUGE)
        self.level = self.levels.Metric()
        self.times = pb_utils.MetricFamily("times", "Times", pb_utils.MetricFamily.HISTOGRAM)
        self.time = self.times.Metric(buckets=[1, 2])

    def execute(self, requests):
        by = float(requests[0].inputs()[0].as_numpy()[0])
        try:
            self.counter.increment(by)
        except pb_utils.TritonModelException as error:
            return [pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error)))]
        self.level.set(by * 10)
        self.level.increment(-1)
        self.time.observe(by)
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([self.counter.value(), self.level.value()], np.float32))])]

    def finalize(self):
        self.counter.increment(1)
"""


def shown():
    return {
        (family.name + sample.suffix, *sample.labels.items()): sample.value
        for family in registry.families()
        if not family.name.startswith("core_")
        for sample in family.samples
    }


@pytest.mark.parametrize("mode", MODES)
async def test_metrics_of_a_model_live_as_long_as_the_model(serve, mode):
    before = shown()  # those that live as long as the process
    model = await serve(METRICS, mode=mode)

    assert await model.y(1.5) == [1.5, 14]
    found = shown()
    assert found["items", ("kind", "a")] == 1.5
    assert found["level",] == 14
    assert found["times_bucket", ("le", "2")] == 1

    await model.chain.close()
    assert shown() == before


@pytest.mark.parametrize("mode", MODES)
async def test_a_counter_cannot_fall(serve, mode):
    model = await serve(METRICS, mode=mode)

    with pytest.raises(Exception, match=r"^Failed to increment metric value: counter can only"):
        await model.y(-1)


async def test_metrics_of_a_dead_child_are_removed(serve, children):
    model = await serve(METRICS)
    await model.y(1)

    (first,) = children()
    os.kill(first, signal.SIGKILL)
    while children() in ([], [first]):  # until the server has noticed
        await asyncio.sleep(0.01)

    assert await model.y(1) == [1, 9]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "code,text",
    [
        ("F('a b', 'd', C)", "Error when creating MetricFamily: 'a b' cannot be the name"),
        ("F('core_x', 'd', C)", "Error when creating MetricFamily: 'core_x' cannot be the name"),
        ("(F('n', 'd', C), F('n', 'd', F.GAUGE))", "Error when creating MetricFamily: metric"),
        ("F('n', 'd', F.GAUGE, multiprocess_mode='all')",
         "Error when creating MetricFamily: metric family 'n': multiprocess_mode is 'all'"),
        ("F('n', 'd', C, multiprocess_mode='max')",
         "Error when creating MetricFamily: metric family 'n': multiprocess_mode is 'max', which"),
        ("F('n', 'd', C).Metric({'a-b': 'x'})", "Error when creating Metric: "),
        ("F('n', 'd', C).Metric({'a': 1})", "Failed to create metric. Labels must be str"),
        ("F('n', 'd', C).Metric(buckets=[1])", "Failed to create metric. Unexpected buckets"),
        ("F('n', 'd', F.HISTOGRAM).Metric()",
         "Failed to create metric. Missing required buckets."),
        ("F('n', 'd', C).Metric().set(1)", "Failed to set metric value: "),
        ("F('n', 'd', C).Metric().observe(1)", "Failed to observe metric value: "),
        ("F('n', 'd', F.HISTOGRAM).Metric(buckets=[1]).value()", "Failed to get metric value: "),
        ("pb_utils.load_model('n')", "'load_model' is not available"),
    ],
)  # fmt: skip
async def test_a_refusal_of_the_server_raises_in_the_model(serve, code, text, mode):
    source = f"""
    def execute(self, requests):
        F, C = pb_utils.MetricFamily, pb_utils.MetricFamily.COUNTER
        try:
            found = {code}
        except pb_utils.TritonModelException as error:
            found = str(error)
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([str(found)], object))])]
    """
    model = await serve(source, datatype="BYTES", mode=mode)

    answer = await model.ask({"x": np.array([b""], object)})

    assert answer.output("y").array[0].decode().startswith(text)


async def test_calls_from_many_threads_get_their_own_answers(serve):
    source = """
    def initialize(self, args):
        family = pb_utils.MetricFamily("numbers", "d", pb_utils.MetricFamily.GAUGE)
        self.family, self.wrong = family, []
        self.metrics = [family.Metric({"n": str(n)}) for n in range(8)]

    def work(self, n):
        for i in range(100):
            self.metrics[n].set(n * 1000 + i)
            if self.metrics[n].value() != n * 1000 + i:
                self.wrong.append(n)

    def execute(self, requests):
        threads = [threading.Thread(target=self.work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([len(self.wrong)], np.float32))])]
    """
    model = await serve(source)

    assert await model.y(1) == [0]


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_a_metric_may_be_nan_or_infinite(serve, mode):
    source = """
    def initialize(self, args):
        self.family = pb_utils.MetricFamily("odd", "d", pb_utils.MetricFamily.GAUGE)
        self.metric = self.family.Metric()

    def execute(self, requests):
        found = []
        for value in (float("nan"), float("inf"), -float("inf")):
            self.metric.set(value)
            found.append(self.metric.value())
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array(found, np.float32))])]
    """
    model = await serve(source, mode=mode)

    assert str(await model.y(1)) == "[nan, inf, -inf]"


@pytest.mark.parametrize("mode", EVERY_MODE)
@pytest.mark.parametrize(
    "code,text",
    [
        ("F('n', 'd' + HALF, C)", "TypeError: MetricFamily: description holds half of a"),
        ("F('n', 'd', C).Metric({'a': HALF})", "TypeError: Metric: a label holds half of a"),
        ("F('n', 'd', F.HISTOGRAM).Metric(buckets=['a'])", "TypeError: a bucket must be a number"),
        ("pb_utils.load_model(HALF)", "TritonModelException: 'load_model' is not available"),
    ],
)
async def test_text_that_cannot_be_written_is_refused_and_ends_nothing(serve, code, text, mode):
    source = f"""
    def execute(self, requests):
        F, C, HALF = pb_utils.MetricFamily, pb_utils.MetricFamily.COUNTER, chr(0xDC80)
        try:
            found = {code}
        except Exception as error:
            found = type(error).__name__ + ": " + str(error)
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([str(found)], object))])]
    """
    model = await serve(source, datatype="BYTES", mode=mode)

    answer = await model.ask({"x": np.array([b""], object)})

    assert answer.output("y").array[0].decode().startswith(text)


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_threads_of_a_model_may_call_the_server(serve, mode, caplog):
    source = """
    def work(self, sender):
        pb_utils.Logger.log_warn("from a thread")
        family = pb_utils.MetricFamily("threads", "d", pb_utils.MetricFamily.GAUGE)
        metric = family.Metric()
        metric.set(7)
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([metric.value()], np.float32))]), flags=1)

    def execute(self, requests):
        senders = [request.get_response_sender() for request in requests]
        for sender in senders:
            threading.Thread(target=self.work, args=(sender,)).start()
        return [None for _ in requests]
    """
    model = await serve(source, mode=mode)

    assert await asyncio.wait_for(model.y(1), 10) == [7]
    assert "from a thread" in caplog.text
