"""Datatypes in triton_python_backend_utils: their numbers, names and numpy types, and strings as bytes."""

import struct

import numpy as np
import pytest
import triton_python_backend_utils as pb_utils


def test_numbers_of_datatypes_and_numpy_types():
    numbers = {number: pb_utils.triton_to_numpy_type(number) for number in range(16)}

    assert [number for number, found in numbers.items() if found is None] == [0, 14, 15]
    assert (numbers[1], numbers[11], numbers[13]) == (np.bool_, np.float32, np.object_)
    for number, found in numbers.items():
        assert found is None or pb_utils.numpy_to_triton_type(found) == number
    assert pb_utils.numpy_to_triton_type(np.bytes_) == 13
    assert pb_utils.numpy_to_triton_type(np.complex64) is None


def test_names_of_datatypes():
    assert pb_utils.triton_string_to_numpy("TYPE_BOOL") is bool
    assert pb_utils.triton_string_to_numpy("TYPE_STRING") is np.object_
    for unknown in ("TYPE_BF16", "FP32"):
        with pytest.raises(KeyError):
            pb_utils.triton_string_to_numpy(unknown)


def test_strings_as_bytes_and_back():
    pack = pb_utils.serialize_byte_tensor

    assert pack(np.array([b"ab", b""], object)) == b"\2\0\0\0ab\0\0\0\0"
    assert pack(np.array(["a", 3, None], object)) == b"\1\0\0\0a\1\0\0\0003\4\0\0\0None"
    assert pack(np.array([[b"ab"], [b"c"]])) == b"\2\0\0\0ab\1\0\0\0c"
    assert pack(np.array([], object)) == ()
    assert pack(np.zeros(2)) is None
    assert pb_utils.deserialize_bytes_tensor(b"\2\0\0\0ab\0\0\0\0").tolist() == [b"ab", b""]
    assert pb_utils.deserialize_bytes_tensor(b"").dtype == object
    with pytest.raises(struct.error):
        pb_utils.deserialize_bytes_tensor(b"\2\0\0\0a")
