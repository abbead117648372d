"""A run whose requests are all cancelled is stopped."""

import threading

import numpy as np
import pytest
from backend_onnx.instance import Termination
from onnx import TensorProto, helper

from core.errors import Kind

FOREVER = np.array([[10**15]], np.int64)
TWICE = np.array([[2]], np.int64)
X = np.ones((1, 1), np.float32)
CONFIG = """
backend: "onnxruntime" max_batch_size: 2
dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 10000000 }
"""


def counting(graph):
    """y = x + the largest count of the batch, computed in a loop of steps."""
    scalar = (TensorProto.FLOAT, ["n", 1])
    step = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Add", ["sum", "one"], ["next"]),
        ],
        "step",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", *scalar),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", *scalar),
        ],
        [helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])],
    )
    return graph(
        [
            ("ReduceMax", ["count"], ["steps"], {"keepdims": 0}),
            ("Loop", ["steps", "", "x"], ["y"], {"body": step}),
        ],
        {"x": scalar, "count": (TensorProto.INT64, ["n", 1])},
        {"y": scalar},
    )


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


def test_the_run_of_cancelled_requests_ends_and_the_instance_continues(serve, graph, begun):
    model = serve(counting(graph), CONFIG)

    for _ in range(3):
        begun.clear()
        both = [{"x": X, "count": FOREVER}] * 2
        errors = model.served.cancelled_when(begun, both, name="m")

        assert [error.kind for error in errors] == [Kind.CANCELLED] * 2
        answers = model.together(*[{"x": X, "count": TWICE}] * 2)
        np.testing.assert_array_equal(answers[0]["y"], X + 2)


def test_cancelling_a_run_does_not_affect_instances_with_the_same_session(serve, graph, begun):
    config = (
        'backend: "onnxruntime" max_batch_size: 1 instance_group [ { count: 2 kind: KIND_CPU } ]'
    )
    model = serve(counting(graph), config)
    longer = {"x": X, "count": np.array([[2_000]], np.int64)}

    answers = model.served.cancelled_when(begun, [longer, {"x": X, "count": FOREVER}], 1, "m")

    np.testing.assert_array_equal(answers[0]["y"], X + 2_000)
    assert answers[1].kind is Kind.CANCELLED


class Options:
    terminate = False


class Request:
    def __init__(self, cancelled=False):
        self.cancelled = cancelled


class Requests:
    def __init__(self, *cancelled):
        self.requests = [Request(each) for each in cancelled]


def test_a_batch_that_is_cancelled_before_its_run_does_not_start():
    with pytest.raises(Exception, match="all requests of the batch were cancelled"):
        Termination(Options()).begin(Requests(True, True))


def test_cancelling_a_finished_batch_does_not_affect_the_next_one():
    options = Options()
    termination = Termination(options)
    first, second = Requests(False), Requests(False)
    termination.begin(first)
    assert termination.end() is None

    termination.now(first)
    termination.begin(second)
    termination.now(first)

    assert not options.terminate
    termination.now(second)
    assert options.terminate
    assert termination.end().kind is Kind.CANCELLED
    assert not options.terminate
