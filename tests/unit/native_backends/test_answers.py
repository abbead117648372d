"""Responses of native backends equal those of a Python backend: values, shapes, rows, text."""

from contextlib import ExitStack

import numpy as np
import pytest
from core_testing.served import Served
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.native_backends import playing

import core
from core import dtypes

BATCHING = "dynamic_batching { max_queue_delay_microseconds: 200000 preferred_batch_size: 8 }"
NUMBERS = [dtype for dtype in dtypes.ALL if dtype not in (dtypes.BYTES, dtypes.BF16)]


class Python(core.ModelInstance):
    """The oracle: y = x in Python."""

    def execute(self, batch):
        return {"y": batch["x"]}


@pytest.mark.parametrize("player", ["copy", "copy_each", "give", "give_copied"])
@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda dtype: dtype.name)
def test_every_datatype_passes_through_a_native_backend(serve, player, dtype):
    served = serve(player, dtype=dtype.name)
    x = np.arange(-6, 6).astype(dtype.numpy).reshape(2, 6)

    answer = served.ask({"x": x})

    assert answer["y"].dtype == x.dtype
    np.testing.assert_array_equal(answer["y"], x)


@pytest.mark.parametrize("player", ["copy", "copy_each", "give", "give_copied"])
def test_strings_pass_through_a_native_backend(serve, player):
    served = serve(player, dtype="STRING")
    x = np.array([[b"", b"caf\xc3\xa9"], [b"x" * 5000, b"\0"]], dtype=object)

    np.testing.assert_array_equal(served.ask({"x": x})["y"], x)


@pytest.mark.parametrize("player", ["copy", "copy_each", "give", "give_copied"])
@pytest.mark.parametrize("dtype", ["FP32", "STRING"])
@pytest.mark.parametrize("columns", [0, 3, 3000])
def test_each_request_gets_its_rows_of_a_batch(serve, player, dtype, columns):
    served = serve(player, dtype=dtype, more=BATCHING)
    arrays = [np.full((rows, columns), rows, np.float32) for rows in (1, 2, 2, 3)]
    if dtype == "STRING":
        arrays = [np.array(a.astype(int).astype(str), dtype=object) for a in arrays]

    answers = served.together([{"x": array} for array in arrays])

    assert served.executions() == 1
    for array, answer in zip(arrays, answers, strict=True):
        assert answer["y"].shape == array.shape
        as_text = dtype == "STRING"
        expected = np.array([[e.encode() for e in row] for row in array]) if as_text else array
        np.testing.assert_array_equal(answer["y"].astype(expected.dtype), expected)


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_native_and_python_backends_return_the_same(data, twins):
    dtype = data.draw(st.sampled_from(sorted(twins)))
    columns = data.draw(st.integers(0, 1200))
    rows = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    seed = np.random.default_rng(data.draw(st.integers(0, 999)))
    requests = [{"x": _array(seed, dtype, (n, columns))} for n in rows]

    native, python = (served.together(requests) for served in twins[dtype])

    for one, other, request in zip(native, python, requests, strict=True):
        assert one["y"].shape == other["y"].shape == request["x"].shape
        assert one["y"].tolist() == other["y"].tolist()


def _array(seed, dtype, shape):
    if dtype != "STRING":
        return seed.integers(0, 100, shape).astype({"INT8": np.int8, "FP64": np.float64}[dtype])
    found = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        found[place] = seed.bytes(seed.integers(0, 20))
    return found


@pytest.fixture(scope="module")
def twins(library, tmp_path_factory):
    """dtype → (native, Python), both served with dynamic batching."""
    with ExitStack() as running:
        made = {}
        for dtype in ("INT8", "FP64", "STRING"):
            pair = []
            for backend in (playing.backend_of(library, "copy"), core.Backend(instance=Python)):
                folder = tmp_path_factory.mktemp("twin")
                playing.write_model(folder, dtype=dtype, more=BATCHING.replace("200000", "1000"))
                served = running.enter_context(Served(backend, folder))
                served.load()
                pair.append(served)
            made[dtype] = tuple(pair)
        yield made
