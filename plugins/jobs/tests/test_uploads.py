"""Parts of uploaded files as requests: what does not fit is the error of one request, not of its job."""

import numpy as np
import pytest
from core_jobs.job import Origin
from core_jobs.offline.inputs.fitting import fitted
from core_jobs.offline.inputs.uploads import request_in

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import CoreError

from .test_files import npy


def signature(dtype, *dims):
    return Signature("m", 1, {"data": InputSpec("data", dtype, dims)}, {}, 0, False)


DEEP = b'{"data":%s"a"%s}' % (b"[" * 600, b"]" * 600)
NO_CHARACTER = npy(np.array(["a"]))[:-4] + b"\xff\xff\xff\x7f"


@pytest.mark.parametrize(
    ("name", "form", "dtype", "data", "text"),
    [
        ("deep.jsonl", ".jsonl", dtypes.BYTES, DEEP, "deep"),
        ("half.npy", ".npy", dtypes.BYTES, npy(np.array(["\ud800"])), "Unicode does not have"),
        ("none.npy", ".npy", dtypes.BYTES, NO_CHARACTER, "Unicode does not have"),
        ("text.npy", ".npy", dtypes.BF16, npy(np.array([b"abcd"])), "elements of |S4"),
        ("void.npy", ".npy", dtypes.BF16, npy(np.zeros(1, "V4")), "elements of |V4"),
        ("time.npy", ".npy", dtypes.FP32, npy(np.zeros(1, "M8[s]")), "elements of datetime64"),
        ("ragged.jsonl", ".jsonl", dtypes.BYTES, b'{"data": [["a"], ["b", "c"]]}', "lengths"),
    ],
)
def test_a_part_that_does_not_fit_is_refused(name, form, dtype, data, text):
    with pytest.raises(CoreError) as refused:
        request_in(data, Origin(name, "", form, ""), signature(dtype, -1))

    assert text in refused.value.message


def test_texts_of_numpy_become_utf_8():
    found = fitted(InputSpec("data", dtypes.BYTES, (2,)), False, np.array(["größe", ""]))

    assert found.array.tolist() == ["größe".encode(), b""]


def test_whole_numbers_become_bf16():
    found = fitted(InputSpec("data", dtypes.BF16, (2,)), False, np.array([1, -2]))

    assert found.array.tolist() == [0x3F80, 0xC000]
