"""The sampling of requests, and the content of trace files."""

import json
import logging

import numpy as np
import pytest

from core import dtypes
from core.telemetry.tracing.sampler import Sampler
from core.telemetry.tracing.settings import TraceSettings
from core.telemetry.tracing.trace import Trace, shown
from core.telemetry.tracing.writer import TraceFiles
from core.tensor import Tensor


@pytest.fixture
def sampler(tmp_path):
    """A sampler that writes to tmp_path/trace; `ids` are those of the traces in a file."""

    def make(**settings):
        made = TraceSettings(level=("TIMESTAMPS",), file=str(tmp_path / "trace"), **settings)
        return Sampler(made, TraceFiles())

    return make


def ids(path):
    return [entry["id"] for entry in json.loads(path.read_text()) if "model_name" in entry]


def trace(id):
    return Trace(id, "m", 1, "", ("TIMESTAMPS",))


def run(sampler, count, first=1):
    """Send requests; return a trace for each sampled one."""
    for id in range(first, first + count):
        if sampler.take():
            sampler.left(trace(id))


async def end(sampler):
    sampler.retire()
    await sampler._files.close()


def test_one_of_rate_requests_is_taken(sampler):
    third = sampler(rate=3)

    assert [third.take() for _ in range(7)] == [False, False, True, False, False, True, False]


def test_no_more_than_count_are_taken(sampler):
    two = sampler(rate=1, count=2)

    assert [two.take() for _ in range(4)] == [True, True, False, False]
    assert two.remaining == 0 and not two.active


@pytest.mark.parametrize("off", [{"count": 0}, {"rate": 0}])
def test_settings_that_trace_no_request(sampler, off):
    assert not sampler(**{"rate": 1, **off}).take()


async def test_without_a_frequency_all_traces_are_in_one_file(sampler, tmp_path):
    one = sampler(rate=1)

    run(one, 5)
    await end(one)

    assert ids(tmp_path / "trace") == [1, 2, 3, 4, 5]
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]


async def test_with_a_frequency_each_file_has_so_many_and_the_last_the_rest(sampler, tmp_path):
    two = sampler(rate=1, log_frequency=2)

    run(two, 5)
    await end(two)

    found = {path.name: ids(path) for path in tmp_path.iterdir()}
    assert found == {"trace.0": [1, 2], "trace.1": [3, 4], "trace.2": [5]}


async def test_a_count_that_is_reached_completes_a_numbered_file(sampler, tmp_path):
    three = sampler(rate=1, count=3)

    run(three, 9)
    await three._files.close()

    assert ids(tmp_path / "trace.0") == [1, 2, 3]


async def test_a_count_that_is_not_reached_leaves_its_traces_in_the_file(sampler, tmp_path):
    three = sampler(rate=1, count=3)

    run(three, 2)
    await end(three)

    assert ids(tmp_path / "trace") == [1, 2]


async def test_a_trace_that_is_under_way_when_settings_change_is_written(sampler, tmp_path):
    two = sampler(rate=1, log_frequency=2)
    two.take()

    two.retire()
    two.left(trace(1))
    await two._files.close()

    assert ids(tmp_path / "trace.0") == [1]


async def test_traces_after_the_end_change_no_file(sampler, tmp_path):
    one = sampler(rate=1)
    run(one, 1)
    await end(one)

    run(one, 1, first=2)
    await one._files.close()

    assert ids(tmp_path / "trace") == [1]


async def test_an_unwritable_file_is_reported_at_first_and_at_the_end(tmp_path, caplog):
    files = TraceFiles()

    with caplog.at_level(logging.ERROR, "core"):
        for id in range(3):
            files.append(str(tmp_path / "absent" / "trace"), [trace(id)])
        await files.close()

    said = [each.message for each in caplog.records]
    assert [text.rpartition("; ")[2] for text in said] == ["1 traces are lost", "2 traces are lost"]
    assert "failed to write the trace file" in said[0]


def test_a_trace_names_its_request_and_its_parent():
    parent = Trace(1, "ensemble", 2, 'a "name"', ("TIMESTAMPS",))
    parent.child(2, "step", 1, "")
    heads = [entry for entry in parent.entries() if "model_name" in entry]

    assert heads == [
        {"id": 1, "model_name": "ensemble", "model_version": 2, "request_id": 'a "name"'},
        {"id": 2, "model_name": "step", "model_version": 1, "parent_id": 1},
    ]


def test_times_are_sorted_regardless_of_the_order_of_calls():
    told = trace(1)
    told.stamp("COMPUTE_END", 30)
    told.stamp("COMPUTE_START", 20)
    told.stamp("QUEUE_START", 10)
    told.stamp("REQUEST_START", 10)

    names = [entry["timestamps"][0]["name"] for entry in told.entries()[1:]]
    assert names == ["REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_END"]


@pytest.mark.parametrize(
    "level,kinds",
    [(("TIMESTAMPS",), {"timestamps"}), (("TENSORS",), {"activity", "tensor"})],
)
def test_only_events_of_the_level_are_kept(level, kinds):
    told = Trace(1, "m", 1, "", level)
    told.stamp("REQUEST_START")
    told.tensors("TENSOR_QUEUE_INPUT", [Tensor.of("x", np.ones(1, np.float32))])

    assert {key for entry in told.entries()[1:] for key in entry} - {"id"} == kinds


def test_a_tensor_in_shared_memory_is_copied():
    memory = bytearray(np.array([1, 2], np.int32).tobytes())
    told = Trace(1, "m", 1, "", ("TENSORS",))
    told.tensors("TENSOR_QUEUE_INPUT", [Tensor("x", dtypes.INT32, (2,), raw=memory)], shared=True)

    memory[:] = bytes(8)

    assert told.entries()[1]["tensor"]["data"] == "1,2"


@pytest.mark.parametrize(
    "array,dtype,data",
    [
        (np.array([[0.1, -2]], np.float32), None, "0.1,-2"),
        (np.array([[1, 2]], np.uint8), None, "1,2"),
        (np.array([[True, False]]), None, "1,0"),
        (np.array([[b'a"b', b"\xff"]], object), None, '"a\\"b","\ufffd"'),
        (np.array([[0x3F80, 0xC000]], np.uint16), dtypes.BF16, "1,-2"),
    ],
)
def test_tensors_are_text(array, dtype, data):
    tensor = Tensor.of("x", array, dtype)

    assert shown(tensor) == {
        "name": "x",
        "data": data,
        "shape": "1,2",
        "dtype": tensor.dtype.name,
    }
