"""batch_input and batch_output over random shapes, beside what numpy makes of the requests alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import Batch, InferenceRequest, Tensor, config
from core.config import signature_of
from core.ragged import batch_inputs, scattered

SHAPES = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=5
)
KINDS = {
    "BATCH_ELEMENT_COUNT": lambda arrays: [array.size for array in arrays],
    "BATCH_ACCUMULATED_ELEMENT_COUNT": lambda arrays: [
        sum(array.size for array in arrays[: i + 1]) for i in range(len(arrays))
    ],
    "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO": lambda arrays: [
        sum(array.size for array in arrays[:i]) for i in range(len(arrays) + 1)
    ],
    "BATCH_ITEM_SHAPE": lambda arrays: [list(row.shape) for array in arrays for row in array],
    "BATCH_ITEM_SHAPE_FLATTEN": lambda arrays: [
        dim for array in arrays for row in array for dim in row.shape
    ],
}


def configured(kind, datatype="INT32"):
    text = f"""
        name: "m" backend: "test" max_batch_size: 64
        input [
          {{ name: "x" data_type: TYPE_FP32 dims: [ -1, -1 ] allow_ragged_batch: true }}
        ]
        output [ {{ name: "y" data_type: TYPE_FP32 dims: [ -1, -1 ] }} ]
        output [ {{ name: "z" data_type: TYPE_FP32 dims: [ 1 ] }} ]
        batch_input [
          {{ kind: {kind} target_name: "about" data_type: TYPE_{datatype} source_input: "x" }}
        ]
        batch_output [
          {{ target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }}
        ]
    """
    return config.parse_text(text, "test")


def batch_of(tmp_path_factory, message, shapes):
    """Return a batch of requests whose elements all differ, and their arrays."""
    signature = signature_of(message, tmp_path_factory.getbasetemp(), 1)
    arrays, requests, start = [], [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        arrays.append(np.arange(start, start + size, dtype=np.float32).reshape(shape))
        requests.append(InferenceRequest("m", {"x": Tensor.of("x", arrays[-1])}))
        requests[-1].rows = shape[0]
        start += size
    return Batch(requests, signature, None), arrays


@pytest.mark.parametrize("datatype", ["INT32", "FP32"])
@pytest.mark.parametrize("kind", KINDS)
@given(shapes=SHAPES)
def test_batch_inputs_describe_the_requests(tmp_path_factory, kind, datatype, shapes):
    message = configured(kind, datatype)
    batch, arrays = batch_of(tmp_path_factory, message, shapes)

    about = batch_inputs(message, batch)["about"]

    assert about.tolist() == KINDS[kind](arrays)
    assert about.dtype == {"INT32": np.int32, "FP32": np.float32}[datatype]


@given(shapes=SHAPES)
def test_the_largest_count_is_the_length_of_an_array(tmp_path_factory, shapes):
    message = configured("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE")
    batch, arrays = batch_of(tmp_path_factory, message, shapes)

    assert batch_inputs(message, batch)["about"].shape == (max(a.size for a in arrays),)


@given(shapes=SHAPES)
def test_ragged_outputs_return_in_the_shape_of_their_input(tmp_path_factory, shapes):
    message = configured("BATCH_ELEMENT_COUNT")
    batch, arrays = batch_of(tmp_path_factory, message, shapes)
    rows = np.arange(batch.rows, dtype=np.float32).reshape(-1, 1)

    x = batch["x"]
    parts = scattered(message, batch, {"y": x, "z": rows})

    assert x.ndim == 1
    for part, array in zip(parts, arrays, strict=True):
        np.testing.assert_array_equal(part["y"], array)
        assert len(part["z"]) == len(array)
    np.testing.assert_array_equal(np.concatenate([part["z"] for part in parts]), rows)
