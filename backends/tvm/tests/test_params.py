"""Files of weights are read without TVM."""

import random

import numpy as np
import pytest
from backend_tvm.params import read_params

ARRAYS = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "scalar": np.array(7, np.int64),
    "bytes": np.arange(5, dtype=np.uint8),
    "empty": np.ones((1, 0, 2), np.float16),
}


def test_arrays(tmp_path, small):
    (tmp_path / "p").write_bytes(small.params(**ARRAYS))

    found = read_params(tmp_path / "p")

    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)


def test_every_truncated_file_is_an_error(tmp_path, small):
    content = small.params(**ARRAYS)
    for size in range(len(content)):
        (tmp_path / "p").write_bytes(content[:size])
        with pytest.raises(ValueError, match="truncated"):
            read_params(tmp_path / "p")


def test_changed_bytes_raise_nothing_but_value_errors(tmp_path, small):
    chance, good = random.Random(1), small.params(**ARRAYS)
    for _ in range(500):
        content = bytearray(good)
        content[chance.randrange(len(content))] = chance.randrange(256)
        (tmp_path / "p").write_bytes(content)
        try:
            read_params(tmp_path / "p")
        except ValueError:
            pass


def test_a_datatype_that_numpy_lacks_is_an_error_with_the_name(tmp_path, small):
    content = small.params(w=np.ones(2, np.float16))
    float16, float8 = bytes([2, 16, 1, 0]), bytes([2, 8, 1, 0])
    assert content.count(float16) == 1
    (tmp_path / "p").write_bytes(content.replace(float16, float8))

    with pytest.raises(ValueError, match="array 'w' has the datatype 2/8/1, which numpy lacks"):
        read_params(tmp_path / "p")


def test_another_file_is_an_error(tmp_path):
    (tmp_path / "p").write_bytes(b"PK" * 100)

    with pytest.raises(ValueError, match=r"no file of tvm\.runtime\.save_param_dict"):
        read_params(tmp_path / "p")
