"""PyTriton's decorators, without a server: from requests to arrays, and back."""

import numpy as np
import pytest
from tritonserver_core.pytriton import (
    ConstantPadder,
    DynamicBatcher,
    ModelConfig,
    PyTritonBadParameterError,
    PyTritonRuntimeError,
    PyTritonValidationError,
    Tensor,
    batch,
    fill_optionals,
    first_value,
    group_by_keys,
    group_by_values,
    pad_batch,
    triton_context,
)
from tritonserver_core.pytriton.context import serving
from tritonserver_core.pytriton.model_config import BoundConfig

ROWS = np.array([[1, 2], [3, 4]], np.float32)


@pytest.fixture
def within():
    """Call functions as those of a model with the inputs a, o (optional) and the output b."""
    batcher = DynamicBatcher(preferred_batch_size=[2, 4])
    inputs = [Tensor((2,), np.float32, "a"), Tensor((1,), np.float32, "o")]
    outputs = [Tensor((-1,), np.float32, "b")]
    config = ModelConfig(max_batch_size=8, batcher=batcher)
    with serving(BoundConfig("m", inputs, outputs, config)):
        yield


def test_requests_with_different_inputs_are_grouped(within):
    calls = []

    @group_by_keys
    @batch
    def function(**inputs):
        calls.append(sorted(inputs))
        return {"b": inputs["a"] * len(inputs)}

    requests = [{"a": ROWS}, {"a": ROWS, "o": ROWS}, {"a": ROWS[:1]}]
    found = function(requests)

    assert calls == [["a"], ["a", "o"]]
    assert [each["b"].tolist() for each in found] == [
        ROWS.tolist(),
        (2 * ROWS).tolist(),
        ROWS[:1].tolist(),
    ]
    with pytest.raises(PyTritonValidationError, match="group_by_keys"):
        batch(lambda **inputs: inputs)(requests)


def test_rows_with_equal_values_are_grouped_and_come_back_in_order(within):
    calls = []

    @batch
    @group_by_values("k", pad_fn=ConstantPadder(-1))
    def function(a, k):
        calls.append(k.tolist())
        return {"b": np.repeat(a[:, :1], int(k[0, 0]), axis=1)}

    k = np.array([[2], [1], [2]], np.int32)
    (found,) = function([{"a": np.arange(6, dtype=np.float32).reshape(3, 2), "k": k}])

    assert sorted(map(str, calls)) == sorted(map(str, [[[1]], [[2], [2]]]))
    assert found["b"].tolist() == [[0, 0], [2, -1], [4, 4]]
    with pytest.raises(PyTritonRuntimeError, match="below @batch"):
        group_by_values("k")(batch(lambda **inputs: inputs))


def test_a_padder_pads_text_and_refuses_mixed_datatypes():
    pad = ConstantPadder()

    short, long = pad([{"t": np.array([[b"a"]])}, {"t": np.array([[b"abc", b"d"]])}])
    assert short["t"].tolist() == [[b"a", b""]] and long["t"].tolist() == [[b"abc", b"d"]]
    with pytest.raises(PyTritonRuntimeError, match="float32"):
        pad([{"a": ROWS}, {"a": ROWS.astype(int)}])


def test_omitted_inputs_get_their_default(within):
    @fill_optionals(o=np.array([7], np.float32))
    @batch
    def function(a, o):
        return {"b": a + o}

    found = function([{"a": ROWS}, {"a": ROWS, "o": np.zeros((2, 1), np.float32)}])

    assert [each["b"].tolist() for each in found] == [(ROWS + 7).tolist(), ROWS.tolist()]


@pytest.mark.parametrize(
    "wrong", [{"z": ROWS[0]}, {"o": 7}, {"o": np.array([7.0])}, {"o": ROWS[0]}], ids=str
)
def test_a_default_that_fits_no_input_is_refused(within, wrong):
    with pytest.raises(PyTritonBadParameterError):
        fill_optionals(**wrong)(lambda requests: requests)([{"a": ROWS}])


def test_a_batch_is_padded_to_a_preferred_size(within):
    sizes = []

    @batch
    @pad_batch
    def function(a):
        sizes.append(len(a))
        return {"b": a}

    for rows in (1, 3, 5):
        (found,) = function([{"a": np.repeat(ROWS[:1], rows, axis=0)}])
        assert found["b"].shape == (rows, 2)
    assert sizes == [2, 4, 8]


def test_the_first_value_stands_for_all_rows(within):
    @batch
    @first_value("k")
    def function(a, k):
        return {"b": a * k}

    same, other = np.array([[2], [2]], np.float32), np.array([[2], [3]], np.float32)

    assert function([{"a": ROWS, "k": same}])[0]["b"].tolist() == (2 * ROWS).tolist()
    with pytest.raises(PyTritonRuntimeError, match="'k'"):
        function([{"a": ROWS, "k": other}])
    with pytest.raises(PyTritonBadParameterError):
        first_value("__triton_context__")


def test_a_function_gets_the_context_of_its_model(within):
    @triton_context
    @batch
    def function(a, **more):
        config = more["__triton_context__"].model_configs[function]
        return {"b": a * config.max_batch_size}

    assert function([{"a": ROWS}])[0]["b"].tolist() == (8 * ROWS).tolist()


def test_a_batch_with_too_few_rows_is_an_error(within):
    with pytest.raises(ValueError, match="expected 2 rows"):
        batch(lambda a: {"b": a[:1]})([{"a": ROWS}])
    with pytest.raises(PyTritonValidationError, match="1 outputs"):
        batch(lambda a: [a, a])([{"a": ROWS}])


def test_decorators_outside_of_a_model_say_so():
    with pytest.raises(PyTritonValidationError, match="not called by a Triton"):
        pad_batch(lambda a: {"b": a})(a=ROWS)
