"""An instance on a thread is notified when no request waits for its execution."""

import threading

import numpy as np
import pytest
from core_testing.served import PATIENCE_S, Served

import core
from core.errors import CoreError, Kind, cancelled

X = np.ones((1, 2), np.float32)
CONFIG = """
backend: "slow" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]
dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 10000000 }
"""


class Slow(core.ModelInstance):
    """Runs until it is notified to stop, or the test releases it."""

    def open(self):
        self.begun = self.model.backend.begun
        self.goes_on = self.model.backend.goes_on
        self.told = []

    def execute(self, batch):
        self.begun.set()
        assert self.goes_on.wait(PATIENCE_S)
        if self.told:
            raise cancelled("broken off")
        return {"y": batch["x"] * 2}

    def cancelled(self, batch):
        self.told.append(len(batch))
        self.model.backend.told.append(len(batch))
        self.goes_on.set()


@pytest.fixture
def backend():
    backend = core.Backend(instance=Slow)
    backend.begun, backend.goes_on, backend.told = threading.Event(), threading.Event(), []
    return backend


@pytest.fixture
def served(backend, tmp_path):
    (tmp_path / "example" / "1").mkdir(parents=True)
    (tmp_path / "example" / "config.pbtxt").write_text(CONFIG)
    with Served(backend, tmp_path) as served:
        served.load()
        yield served
        backend.goes_on.set()


def test_the_execution_stops_when_the_last_request_of_its_batch_is_cancelled(served, backend):
    answers = served.cancelled_when(backend.begun, [{"x": X}] * 3)

    assert [error.kind for error in answers] == [Kind.CANCELLED] * 3
    assert backend.told == [3]


def test_an_execution_with_a_waiting_request_continues(served, backend):
    answers = []
    asking = threading.Thread(
        target=lambda: answers.extend(served.cancelled_when(backend.begun, [{"x": X}] * 3, left=1))
    )
    asking.start()
    assert backend.begun.wait(PATIENCE_S)

    assert served.executions() == 0
    backend.goes_on.set()
    asking.join()

    np.testing.assert_array_equal(answers[0]["y"], 2 * X)
    assert backend.told == []


def test_an_answered_request_does_not_count_as_cancelled(served, backend):
    backend.goes_on.set()

    answers = served.together([{"x": X}] * 3)

    assert not any(isinstance(answer, CoreError) for answer in answers)
    assert backend.told == []
