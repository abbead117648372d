"""The signals of a server: how long a request would wait, and how much of the capacity is used."""

import threading
import time

import numpy as np
import pytest
from core_ray.signals import LoadSignals, new_rows, row_ns

import core


class Gated:
    """A function of a model that waits until its gate is open."""

    def __init__(self):
        self.gate = threading.Event()

    def __call__(self, x):
        assert self.gate.wait(20)
        time.sleep(0.005)
        return x


class Clock:
    """Nanoseconds that pass when the test says so."""

    def __init__(self):
        self.now_ns = 0

    def __call__(self):
        return self.now_ns

    def advance(self, seconds):
        self.now_ns += int(seconds * 1e9)


@pytest.fixture
def gated():
    return Gated()


@pytest.fixture
def server(gated):
    with core.Server() as made:
        made.bind("gated", gated, inputs={"x": ("FP32", [1])}, outputs={"y": ("FP32", [1])})
        yield made
        gated.gate.set()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def signals(server, clock):
    return LoadSignals(server, clock)


def send(server, count, model="gated"):
    """Send requests side by side; return a function that waits for their responses."""
    threads = [
        threading.Thread(target=server.infer, args=(model, {"x": np.zeros(1, np.float32)}))
        for _ in range(count)
    ]
    for each in threads:
        each.start()
    return lambda: [each.join() for each in threads]


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_an_idle_server_has_no_wait_and_uses_nothing(signals, clock):
    clock.advance(1)

    assert signals.read() == {"core_wait_ms": 0.0, "core_busy": 0.0}


def test_the_wait_grows_with_the_queue(server, gated, signals):
    gated.gate.set()
    send(server, 4)()
    gated.gate.clear()
    wait = send(server, 5)

    # One is executed and four wait, each for the mean time of those that are done.
    until(lambda: signals.read()["core_wait_ms"] >= 4 * 5)
    gated.gate.set()
    wait()
    assert signals.read()["core_wait_ms"] == 0.0


def test_the_use_is_the_share_of_the_time_since_the_last_reading(server, gated, signals, clock):
    gated.gate.set()
    send(server, 10)()

    clock.advance(1)
    (statistics,) = server.statistics("gated")
    spent_s = statistics["inference_stats"]["compute_infer"]["ns"] / 1e9
    assert signals.read()["core_busy"] == pytest.approx(spent_s, rel=0.2)
    clock.advance(1)
    assert signals.read()["core_busy"] == 0.0


def test_an_execution_that_has_not_ended_uses_its_instance(server, gated, signals, clock):
    wait = send(server, 1)
    clock.advance(1)

    until(lambda: signals.read()["core_busy"] == 1.0)
    gated.gate.set()
    wait()


ENSEMBLE = """
platform: "ensemble"
input [{ name: "x" data_type: TYPE_FP32 dims: [1] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [1] }]
ensemble_scheduling { step [{
  model_name: "gated" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }] }
"""


def test_an_ensemble_counts_by_its_steps(tmp_path, gated, clock):
    (tmp_path / "both" / "1").mkdir(parents=True)
    (tmp_path / "both" / "config.pbtxt").write_text(ENSEMBLE)
    tensors = {"inputs": {"x": ("FP32", [1])}, "outputs": {"y": ("FP32", [1])}}
    with core.Server(model_repository=str(tmp_path), model_control_mode="explicit") as server:
        server.bind("gated", gated, instances=8, **tensors)
        server.load("both")
        signals = LoadSignals(server, clock)
        wait = send(server, 1, "both")
        until(lambda: signals._gauges("core_inference_in_flight")[0].get(("gated", "1")))
        clock.advance(1)
        busy = signals.read()["core_busy"]
        gated.gate.set()
        wait()

    assert busy == pytest.approx(1 / 8)


def test_the_rows_between_two_readings_are_counted_also_after_a_reload():
    before = {1: (100, 1000), 8: (10, 500)}

    assert new_rows(before, {1: (103, 1030), 8: (12, 600)}) == 3 + 16
    assert new_rows(before, {1: (4, 40)}) == 4


def test_capacity_is_that_of_the_best_batch_size():
    assert row_ns({}) == 0
    assert row_ns({1: (100, 1000), 8: (10, 400)}) == 5
    assert row_ns({1: (100, 1000), 8: (1, 8)}) == 10  # one execution proves nothing
    assert row_ns({2: (2, 16), 4: (1, 16)}) == 4
