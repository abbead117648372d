"""A run whose requests are all cancelled is stopped."""

import threading

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from backend_openvino.instance import OpenVinoInstance, Termination

from core.errors import Kind

ROWS, WIDTH = 4096, 512
FIXED = 'backend: "openvino"'
VARIABLE = """
backend: "openvino" max_batch_size: 2
dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 10000000 }
"""


def full_of(value, *shape):
    return {"x": np.full(shape, value, np.float32)}


def many_steps(model_of, *dims):
    """y = x through a chain of matrix products, which takes seconds."""
    weights = op.constant(np.eye(WIDTH, dtype=np.float32))

    def steps(x):
        for _ in range(100):
            x = op.relu(op.matmul(x, weights, False, False))
        return {"y": x}

    return model_of(steps, x=(ov.Type.f32, (*dims, WIDTH)))


@pytest.fixture
def begun(monkeypatch):
    """An event that is set when a run begins."""
    begun = threading.Event()
    begin = Termination.begin

    def noted(self, batch):
        begin(self, batch)
        begun.set()

    monkeypatch.setattr(Termination, "begin", noted)
    return begun


@pytest.fixture
def finished(monkeypatch):
    """A list that gets the outputs of each completed run."""
    finished = []
    copies = OpenVinoInstance._copies

    def noted(self, found, names):
        finished.append(copies(self, found, names))
        return finished[-1]

    monkeypatch.setattr(OpenVinoInstance, "_copies", noted)
    return finished


def test_the_run_of_a_cancelled_request_ends_and_the_instance_continues(
    serve, model_of, begun, finished
):
    model = serve(many_steps(model_of, ROWS), FIXED)

    for value in (1, 2):
        begun.clear()
        (error,) = model.served.cancelled_when(begun, [full_of(value + 10, ROWS, WIDTH)], name="m")

        assert error.kind is Kind.CANCELLED
        x = full_of(value, ROWS, WIDTH)["x"]
        np.testing.assert_array_equal(model(x=x)["y"], x)
        assert len(finished) == value


def test_cancelling_a_run_does_not_affect_other_instances(serve, model_of, begun, finished):
    config = (
        FIXED + " instance_group [ { count: 2 kind: KIND_CPU } ] "
        'parameters { key: "NUM_STREAMS" value { string_value: "2" } }'
    )
    model = serve(many_steps(model_of, ROWS), config)
    both = [full_of(value, ROWS, WIDTH) for value in (1, 2)]

    answers = model.served.cancelled_when(begun, both, 1, "m")

    np.testing.assert_array_equal(answers[0]["y"], both[0]["x"])
    assert answers[1].kind is Kind.CANCELLED
    assert len(finished) == 1


def test_the_run_of_a_model_with_variable_shapes_continues_to_its_end(
    serve, model_of, begun, finished
):
    """If it were cancelled, OpenVINO would mix its values into the answers to later requests."""
    model = serve(many_steps(model_of, -1, -1), VARIABLE)

    for value in (1, 2):
        begun.clear()
        long = full_of(value + 10, 1, ROWS // 8, WIDTH)
        model.served.cancelled_when(begun, [long] * 2, name="m")

        x = full_of(value, 1, 3, WIDTH)
        for answer in model.together(x, x):
            np.testing.assert_array_equal(answer["y"], x["x"])
        assert len(finished) == 2 * value


class Asked:
    """A stand-in for an infer request and for the event loop."""

    def __init__(self):
        self.cancels = 0
        self.later = []

    def cancel(self):
        self.cancels += 1

    def call_later(self, delay_s, function, *arguments):
        self.later.append((function, arguments))

    def pass_time(self):
        later, self.later = self.later, []
        for function, arguments in later:
            function(*arguments)


class Batch:
    def __init__(self, *cancelled):
        self.requests = [type("Request", (), {"cancelled": each}) for each in cancelled]


def test_a_batch_that_is_cancelled_before_its_run_does_not_start():
    with pytest.raises(Exception, match="all requests of the batch were cancelled"):
        Termination(Asked(), Asked()).begin(Batch(True, True))


def test_a_run_is_cancelled_even_if_openvino_starts_it_late():
    asked = Asked()
    termination, batch = Termination(asked, asked), Batch(False)
    termination.begin(batch)

    termination.now(batch)
    asked.pass_time()

    assert asked.cancels == 2
    assert termination.end().kind is Kind.CANCELLED
    asked.pass_time()
    assert (asked.cancels, asked.later) == (2, [])


def test_cancelling_a_finished_batch_does_not_affect_the_next_one():
    asked = Asked()
    termination = Termination(asked, asked)
    first, second = Batch(False), Batch(True, False)
    termination.begin(first)
    assert termination.end() is None

    termination.begin(second)
    termination.now(first)

    assert asked.cancels == 0
    assert termination.end() is None
