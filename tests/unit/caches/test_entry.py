"""Answers as bytes and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra import numpy as arrays

from core import dtypes
from core.caches import pack, unpack
from core.tensor import Tensor

ANY = some.sampled_from([d for d in dtypes.ALL if d is not dtypes.BYTES]).flatmap(
    lambda dtype: some.builds(
        lambda name, array: Tensor.of(name, array, dtype if dtype is dtypes.BF16 else None),
        some.text(max_size=5),
        arrays.arrays(dtype.numpy, arrays.array_shapes(min_dims=0, min_side=0)),
    )
)
WORDS = some.lists(some.binary(max_size=9), max_size=5).map(
    lambda words: Tensor.of("words", np.array(words, object))
)


@given(some.lists(ANY | WORDS, max_size=4))
def test_outputs_come_back_as_they_were(outputs):
    found = unpack(pack(outputs))

    assert [(t.name, t.dtype, t.shape, bytes(t.raw)) for t in found] == [
        (t.name, t.dtype, t.shape, bytes(t.raw)) for t in outputs
    ]


@given(some.lists(ANY | WORDS, max_size=3), some.data())
def test_bytes_that_are_damaged_are_refused_or_well_formed(outputs, data):
    entry = bytearray(pack(outputs))
    for _ in range(data.draw(some.integers(1, 3))):
        entry[data.draw(some.integers(0, len(entry) - 1))] = data.draw(some.integers(0, 255))

    try:
        found = unpack(bytes(entry[: data.draw(some.integers(0, len(entry)))]))
    except ValueError:
        return
    for tensor in found:
        assert tensor.array.shape == tensor.shape


@given(some.binary(max_size=64))
def test_an_invalid_entry_is_refused(data):
    with pytest.raises(ValueError):
        unpack(data)


@pytest.mark.parametrize(
    "head",
    [
        b"{}",
        b"[1]",
        b"[[1]]",
        b'[["x","FP32",[2],4]]',
        b'[["x","FP32",[-1],4]]',
        b"[" * 5000,
        b"\xff",
    ],
)
def test_a_wrong_head_is_refused(head):
    with pytest.raises(ValueError):
        unpack(b"cre1" + len(head).to_bytes(4, "little") + head + b"\0" * 4)
