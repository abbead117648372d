"""identity copies any inputs to outputs."""

import numpy as np
import pytest
from backend_testing import identity
from backend_testing.identity import Identity

import core
from core import dtypes
from core.config import parse_text
from core.errors import CoreError

BATCHING = "dynamic_batching { max_queue_delay_microseconds: 200000 preferred_batch_size: 4 }"


def pair(index, dtype="FP32", dims="-1", more="", output=None):
    return (
        f'input {{ name: "INPUT{index}" data_type: TYPE_{dtype} dims: [{dims}] {more} }}\n'
        f'output {{ name: "OUTPUT{index}" data_type: TYPE_{output or dtype} dims: [{dims}] }}\n'
    )


def config(*pairs, rows=8, more=""):
    return f'backend: "identity" max_batch_size: {rows}\n' + "".join(pairs) + more


def parameter(name, value):
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


@pytest.mark.parametrize(
    "dtype", [d for d in dtypes.ALL if d.byte_size and d is not dtypes.BF16], ids=str
)
def test_every_datatype_comes_back_unchanged(serve, dtype):
    served = serve(identity, config(pair(0, dtype.name), rows=0))
    x = np.arange(-3, 3).astype(dtype.numpy)

    answer = served.ask({"INPUT0": x})["OUTPUT0"]

    assert answer.dtype == x.dtype
    np.testing.assert_array_equal(answer, x)


def test_all_outputs_or_only_the_wanted_ones_come_back(serve):
    served = serve(identity, config(pair(0), pair(1, "INT8", "2, 2"), pair(7, "STRING", "1")))
    inputs = {
        "INPUT0": np.ones((2, 5), np.float32),
        "INPUT1": np.ones((2, 2, 2), np.int8),
        "INPUT7": np.array([[b"a"], [b""]], object),
    }

    everything = served.ask(inputs)
    some = served.ask(inputs, outputs=["OUTPUT7"])

    assert list(everything) == ["OUTPUT0", "OUTPUT1", "OUTPUT7"]
    for name, array in inputs.items():
        np.testing.assert_array_equal(everything[name.replace("IN", "OUT")], array)
    assert list(some) == ["OUTPUT7"]


def test_rows_of_a_batch_go_back_to_their_requests(serve):
    served = serve(identity, config(pair(0), more=BATCHING))
    arrays = [np.full((rows, 2000), rows, np.float32) for rows in (1, 3)]

    answers = served.together([{"INPUT0": each} for each in arrays])

    assert served.executions() == 1
    for array, answer in zip(arrays, answers, strict=True):
        np.testing.assert_array_equal(answer["OUTPUT0"], array)


def test_ragged_requests_of_one_batch_come_back_unchanged(serve):
    served = serve(identity, config(pair(0, more="allow_ragged_batch: true"), more=BATCHING))
    arrays = [np.arange(size, dtype=np.float32)[None] for size in (1, 4, 2, 3)]

    answers = served.together([{"INPUT0": each} for each in arrays])

    assert served.executions() == 1
    for array, answer in zip(arrays, answers, strict=True):
        np.testing.assert_array_equal(answer["OUTPUT0"], array)


def test_a_missing_optional_input_comes_back_as_zeros(serve):
    served = serve(
        identity,
        config(
            pair(0),
            pair(1, "INT64", "-1, 3", "optional: true"),
            pair(2, "STRING", "2", "optional: true"),
        ),
    )

    answer = served.ask({"INPUT0": np.ones((2, 1), np.float32)})

    np.testing.assert_array_equal(answer["OUTPUT1"], np.zeros((2, 1, 3), np.int64))
    assert answer["OUTPUT2"].tolist() == [[b"", b""], [b"", b""]]


def test_bytes_of_inputs_are_counted_by_model_and_version(serve):
    served = serve(identity, config(pair(0)))

    served.ask({"INPUT0": np.ones((2, 5), np.float32)})
    served.ask({"INPUT0": np.ones((1, 1), np.float32)})

    counters = {f.name: f for f in served._on_loop(served._server.control.health.metrics_here)}
    (sample,) = counters["input_byte_size_counter"].samples
    assert dict(sample.labels) == {"model": "example", "version": "1"}
    assert sample.value == 44
    served.unload()
    assert "input_byte_size_counter" not in {
        f.name for f in served._on_loop(served._server.control.health.metrics_here)
    }


@pytest.mark.parametrize(
    ("parameters", "delays"),
    [
        ([], [0, 0, 0]),
        ([("execute_delay_ms", "5")], [5, 5, 5]),
        ([("execute_delay_ms", "5"), ("instance_wise_delay_multiplier", "3")], [5, 15, 30]),
        ([("execute_delay_ms", "soon")], [0, 0, 0]),
    ],
)
def test_each_instance_has_its_delay(parameters, delays):
    model = Identity()
    text = config(pair(0), more="".join(parameter(*each) for each in parameters))
    model.config = parse_text(f'name: "m" {text}', "test")
    model.load()

    assert [model.delay_ms() for _ in range(3)] == delays


def test_an_execution_takes_at_least_its_delay(serve):
    served = serve(identity, config(pair(0), more=parameter("execute_delay_ms", 30)))

    served.ask({"INPUT0": np.ones((1, 1), np.float32)})

    (entry,) = served._on_loop(lambda: served._server.control.health.statistics_here("example"))
    assert int(entry["inference_stats"]["compute_infer"]["ns"]) >= 30_000_000


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([pair(0, output="INT8")], r"input 'INPUT0' is FP32\[-1\], its output 'OUTPUT0' is INT8"),
        ([pair(0).replace("OUTPUT0", "OUTPUT1")], r"inputs \['0'\] and outputs \['1'\]"),
        ([pair(0).replace("INPUT0", "x")], "has 'x', the backend knows INPUT<index>"),
    ],
)
def test_a_configuration_without_pairs_is_refused(serve, pairs, message):
    with pytest.raises(CoreError, match=message):
        serve(identity, config(*pairs))


def test_it_is_a_backend_of_that_name():
    from core.plugins import available_backends

    assert {"identity", "repeat", "square"} <= available_backends().keys()
    assert isinstance(identity, core.Backend)
