"""Tensors: of arrays and text, to arrays and text, without copies; allocators."""

import gc
import sys
import weakref

import numpy as np
import pytest
import torch
import tritonserver
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tritonserver import DataType, DLDeviceType, MemoryBuffer, MemoryType, Tensor

TYPES = {
    "bool": DataType.BOOL,
    "uint8": DataType.UINT8,
    "uint16": DataType.UINT16,
    "uint32": DataType.UINT32,
    "uint64": DataType.UINT64,
    "int8": DataType.INT8,
    "int16": DataType.INT16,
    "int32": DataType.INT32,
    "int64": DataType.INT64,
    "float16": DataType.FP16,
    "float32": DataType.FP32,
    "float64": DataType.FP64,
}


@pytest.mark.parametrize("name", TYPES)
def test_an_array_of_each_datatype_comes_back_unchanged(name):
    array = np.arange(6).reshape(2, 3).astype(name)

    tensor = Tensor.from_dlpack(array)

    assert tensor.data_type is TYPES[name]
    assert list(tensor.shape) == [2, 3]
    assert tensor.size == array.nbytes
    np.testing.assert_array_equal(np.from_dlpack(tensor), array)


@given(arrays.arrays(np.float32, arrays.array_shapes(max_dims=4, min_side=0, max_side=5)))
def test_arrays_of_any_shape_come_back_unchanged(array):
    np.testing.assert_array_equal(np.from_dlpack(Tensor.from_dlpack(array)), array)


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_bytes_of_any_content_come_back_unchanged(items):
    tensor = Tensor.from_bytes_array(np.array([*items, None], object)[:-1])

    assert tensor.to_bytes_array().tolist() == items


def test_the_memory_of_an_array_is_shared_and_kept():
    array = np.ones(1000, np.float32)
    tensor = Tensor.from_dlpack(array)

    assert tensor.data_ptr == array.ctypes.data
    assert sys.getrefcount(array) == 3  # array, the tensor's buffer, the argument
    view = torch.from_dlpack(tensor)
    assert view.data_ptr() == array.ctypes.data
    kept = weakref.ref(tensor.memory_buffer)
    del tensor
    gc.collect()
    assert kept() is not None  # through the capsule of the view
    del view
    gc.collect()
    assert kept() is None


def test_bfloat16_of_torch_comes_back_as_bfloat16():
    values = torch.tensor([[1.5, -2.0]], dtype=torch.bfloat16)

    tensor = Tensor.from_dlpack(values)

    assert tensor.data_type is DataType.BF16
    back = torch.from_dlpack(tensor)
    assert back.dtype == torch.bfloat16 and torch.equal(back, values)


def test_text_becomes_bytes_and_text_again():
    tensor = Tensor.from_string_array([["a", "é"], ["", "xyz"]])

    assert tensor.data_type is DataType.BYTES
    assert list(tensor.shape) == [2, 2]
    assert tensor.to_bytes_array().tolist() == [[b"a", "é".encode()], [b"", b"xyz"]]
    assert tensor.to_string_array().tolist() == [["a", "é"], ["", "xyz"]]


def test_the_wire_form_of_text_is_tritons():
    tensor = Tensor.from_bytes_array([b"ab"])

    assert tensor.size == 6
    assert bytes(np.asarray(tensor._bytes())) == b"\x02\0\0\0ab"


@pytest.mark.parametrize(
    "value, said",
    [
        ([1, 2], "INT64"),
        (np.zeros(2, np.float32), "FP32"),
    ],
)
def test_numbers_are_no_text(value, said):
    with pytest.raises(tritonserver.InvalidArgumentError, match=said):
        Tensor.from_bytes_array(value)


@pytest.mark.parametrize("value", [object(), {"a": 1}, np.zeros(2, np.complex64), [[1], [1, 2]]])
def test_what_is_no_array_is_refused(value):
    with pytest.raises(tritonserver.InvalidArgumentError):
        Tensor._from_object(value)


def test_an_array_with_gaps_is_refused_by_dlpack_and_copied_from_numpy():
    array = np.arange(6, dtype=np.int32)[::2]

    with pytest.raises(tritonserver.InvalidArgumentError, match="contiguous"):
        Tensor.from_dlpack(array)
    assert np.from_dlpack(Tensor._from_object(array)).tolist() == [0, 2, 4]


def test_a_tensor_on_the_host_stays_there():
    tensor = Tensor.from_dlpack(np.zeros(1, np.int8))

    assert tensor.to_host() is tensor
    assert tensor.to_device((MemoryType.CPU, 0)) is tensor
    assert tensor.to_device((DLDeviceType.kDLCPU, 0)) is tensor
    assert tensor.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("place", ["tpu", "cpu:x", "gpu:0:1", 7, (MemoryType.CPU, "0")])
def test_an_unknown_place_is_refused(place):
    with pytest.raises(tritonserver.InvalidArgumentError, match="memory type"):
        Tensor.from_dlpack(np.zeros(1)).to_device(place)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_a_copy_to_it_is_unsupported():
    with pytest.raises(tritonserver.UnsupportedError, match="cuda:0"):
        Tensor.from_dlpack(np.zeros(1)).to_device("gpu")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_copy_to_a_gpu_and_back_keeps_the_elements():
    for tensor in (Tensor.from_dlpack(np.arange(5.0)), Tensor.from_string_array(["a", "bc"])):
        there = tensor.to_device("gpu:0")

        assert there.memory_type is MemoryType.GPU and there.size == tensor.size
        np.testing.assert_array_equal(there.to_host()._bytes(), tensor._bytes())
    assert torch.from_dlpack(Tensor.from_dlpack(np.arange(5.0)).to_device("gpu")).sum() == 10


def test_text_and_streams_have_no_dlpack_on_the_host():
    with pytest.raises(tritonserver.UnsupportedError, match="to_bytes_array"):
        Tensor.from_bytes_array([b"a"]).__dlpack__()
    with pytest.raises(tritonserver.UnsupportedError, match="stream"):
        Tensor.from_dlpack(np.zeros(1)).__dlpack__(stream=7)


def test_a_memory_buffer_describes_an_array():
    array = np.zeros((2, 3), np.int16)

    buffer = MemoryBuffer.from_dlpack(array)

    assert (buffer.data_ptr, buffer.size) == (array.ctypes.data, 12)
    assert (buffer.memory_type, buffer.memory_type_id) == (MemoryType.CPU, 0)
    assert buffer.owner is array
    with pytest.raises(tritonserver.InvalidArgumentError):
        MemoryBuffer.from_dlpack("text")
