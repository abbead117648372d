"""The best classes of a tensor, against plain sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core import dtypes
from core.errors import CoreError, Kind
from core.pipeline.answers.classification import classify
from core.tensor import Tensor


def classes(values, count, labels=(), batching=True):
    return classify(Tensor.of("y", np.array(values)), count, labels, batching)


def test_an_element_is_value_index_and_label():
    found = classes(np.array([[0.125, 0.5, 0.25]], np.float32), 2, ("ant", "bee", "cat"))

    assert found.dtype is dtypes.BYTES
    assert found.array.tolist() == [[b"0.500000:1:bee", b"0.250000:2:cat"]]


def test_without_a_label_an_element_is_value_and_index():
    assert classes(np.array([[1.0, 2.0]]), 2, ("ant",)).array.tolist() == [
        [b"2.000000:1", b"1.000000:0:ant"]
    ]


def test_integers_are_printed_as_integers():
    found = classes(np.array([[3, 2**63]], np.uint64), 1)

    assert found.array.tolist() == [[b"9223372036854775808:1"]]


def test_without_batching_the_whole_tensor_is_one_row():
    found = classes(np.array([[1.0, 4.0], [3.0, 2.0]]), 2, batching=False)

    assert found.shape == (2,)
    assert found.array.tolist() == [b"4.000000:1", b"3.000000:2"]


@given(
    arrays.arrays(np.int16, arrays.array_shapes(min_dims=2, max_dims=3, min_side=1, max_side=6)),
    st.integers(1, 10),
)
def test_classes_are_sorted_by_value_and_equal_values_by_index(table, count):
    found = classes(table, count)

    rows = table.reshape(len(table), -1)
    assert found.shape == (len(rows), min(count, rows.shape[1]))
    for row, texts in zip(rows, found.array, strict=True):
        expected = sorted(range(len(row)), key=lambda i: (-int(row[i]), i))[:count]
        assert [int(text.split(b":")[1]) for text in texts] == expected


@pytest.mark.parametrize("dtype", [np.float16, bool, object])
def test_datatypes_without_a_printable_order_are_refused(dtype):
    with pytest.raises(CoreError, match="class result not available for output") as error:
        classify(Tensor.of("y", np.zeros((1, 2), dtype)), 1, (), True)
    assert error.value.kind is Kind.INVALID


def test_a_huge_tensor_is_refused():
    with pytest.raises(CoreError, match="classification output tensor too large"):
        classes(np.zeros((1, 1_000_001), np.int8), 1)
