"""Outputs into memory that the client names."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import dtypes
from core.errors import CoreError, Kind
from core.pipeline.answers.placement import place
from core.tensor import Tensor

numbers = Tensor.of("y", np.array([[1, 2], [3, 4]], np.int16))


def test_an_output_is_written_to_the_beginning_of_the_memory_and_the_rest_stays():
    memory = bytearray(b"-" * 12)

    place(numbers, memoryview(memory))

    assert memory == b"\1\0\2\0\3\0\4\0----"


def test_strings_are_written_with_their_lengths():
    memory = bytearray(9)

    place(Tensor.of("y", np.array([b"a", b""], object)), memoryview(memory))

    assert memory == b"\1\0\0\0a\0\0\0\0"


def test_rows_of_a_batch_and_empty_tensors_fit():
    memory = bytearray(4)

    place(Tensor("y", dtypes.INT16, (1, 2), array=numbers.array[1:]), memoryview(memory))
    place(Tensor.of("y", np.zeros((0, 3), np.float32)), memoryview(bytearray()))

    assert memory == b"\3\0\4\0"


def test_an_output_that_does_not_fit_does_not_change_the_memory():
    memory = bytearray(7)

    with pytest.raises(CoreError) as caught:
        place(numbers, memoryview(memory))

    assert caught.value.kind is Kind.INTERNAL
    assert caught.value.message == (
        "shared memory size specified with the request for output 'y' (7 bytes) should be at least "
        "8 bytes to hold the results"
    )
    assert memory == bytes(7)


@given(source=st.integers(0, 30), target=st.integers(0, 30), size=st.integers(0, 30))
def test_an_output_may_be_a_view_of_its_target_memory(source, target, size):
    memory = bytearray(range(60))
    expected = bytearray(memory)
    expected[target : target + size] = memory[source : source + size]
    view = memoryview(memory)

    place(Tensor("y", dtypes.UINT8, (size,), raw=view[source : source + size]), view[target:])

    assert memory == expected
