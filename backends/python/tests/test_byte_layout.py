"""The descriptions of batches' tensors, compared with the tensors of each request."""

import json

import numpy as np
import pytest
from backend_python.server.byte_layout import LayoutCache, TensorSlice, tensors_of
from hypothesis import given
from hypothesis import strategies as st

from core import dtypes
from core.native.arrays import joined
from core.request import InferenceRequest, RequestedOutput
from core.tensor import Tensor

ALIGNMENT = 64
KINDS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from([dtypes.UINT8, dtypes.FP32, dtypes.BYTES]),
        st.lists(st.integers(0, 3), max_size=2),
    ),
    max_size=3,
    unique_by=lambda kind: kind[0],
)


def tell(entries):
    return json.dumps(entries).encode()


def tensor(name, dtype, shape):
    values = (
        np.full(shape, b"text", object) if dtype is dtypes.BYTES else np.ones(shape, dtype.numpy)
    )
    return Tensor(name, dtype, tuple(shape), array=values)


def request(kinds=(("x", dtypes.FP32, [2]),), **fields):
    return InferenceRequest("m", {kind[0]: tensor(*kind) for kind in kinds}, **fields)


def told(requests):
    return [
        tell([(t.name, t.dtype.number, t.shape, len(t.raw)) for t in each.inputs.values()])
        for each in requests
    ]


@given(st.lists(KINDS, min_size=1, max_size=3), st.lists(st.integers(0, 2), max_size=8))
def test_each_request_is_described_correctly_whatever_came_before(kinds, order):
    layouts = LayoutCache(tell, ALIGNMENT)
    requests = [request(kinds[i % len(kinds)]) for i in order]

    for count in (1, len(requests)):
        laid = layouts.batch(requests[:count])

        assert laid.items == told(requests[:count])
        tensors = [t for each in requests[:count] for t in each.inputs.values()]
        assert [bytes(each) for each in laid.parts] == [bytes(t.raw) for t in tensors]
        assert laid.size == len(joined(laid.parts, ALIGNMENT))


def test_equal_requests_are_described_once():
    asked = []
    layouts = LayoutCache(lambda entries: asked.append(entries) or tell(entries), ALIGNMENT)
    one, other = request(), request([("y", dtypes.FP32, [2])])

    for each in (one, other, one, other, one):
        assert layouts.batch([each, each]).items == told([each, each])

    assert len(asked) == 2


def test_more_kinds_than_the_cache_holds_are_described_again():
    layouts = LayoutCache(tell, ALIGNMENT)
    requests = [request([("x", dtypes.UINT8, [n])]) for n in range(600)]

    for _ in range(2):
        assert layouts.batch(requests).items == told(requests)


NAMED = tuple(RequestedOutput(name) for name in ("p", "q"))


@pytest.mark.parametrize(
    "fields,plain",
    [
        ({}, True),
        ({"id": "one"}, False),
        ({"correlation_id": 1}, False),
        ({"flags": 1}, False),
        ({"timeout_us": 1}, False),
        ({"parameters": {"a": 1}}, False),
        ({"parameters": {}}, True),
        ({"trace": object()}, False),
        ({"priority": 3}, True),  # means nothing to a model
        ({"outputs": NAMED}, True),
        ({"outputs": NAMED[::-1]}, True),
        ({"outputs": NAMED[:1]}, False),
        ({"outputs": NAMED[:1] * 2}, False),
    ],
    ids=str,
)
def test_a_request_is_plain_if_it_has_only_tensors(fields, plain):
    layouts = LayoutCache(tell, ALIGNMENT, ["p", "q"])

    assert layouts.batch([request(), request(**fields), request()]).plain is plain


def test_tensors_of_a_response_are_one_item():
    layouts = LayoutCache(tell, ALIGNMENT)
    tensors = [tensor("x", dtypes.FP32, [2]), tensor("y", dtypes.BYTES, [1])]

    laid = layouts.tensors(tensors)

    assert laid.items == told([request([("x", dtypes.FP32, [2]), ("y", dtypes.BYTES, [1])])])
    assert laid.size == 2 * ALIGNMENT


@pytest.mark.parametrize("form", [bytes, bytearray], ids=str)
def test_tensors_are_read_from_their_region(form):
    region = form(b"ahead" + np.arange(4, dtype=np.float32).tobytes() + b"text")
    items = [
        [TensorSlice("y", dtypes.FP32, (2,), 0, 8), TensorSlice("z", dtypes.FP32, (1, 2), 8, 8)],
        [],
        [TensorSlice("t", dtypes.BYTES, (1,), 0, 4)],
    ]

    first, second, third = tensors_of(items, [0, 16, 16], region, len(b"ahead"))

    assert [t.array.tolist() for t in first] == [[0, 1], [[2, 3]]]
    assert [(t.name, t.shape) for t in first] == [("y", (2,)), ("z", (1, 2))]
    assert second == []
    assert bytes(third[0].raw) == b"text"


def test_a_slice_outside_of_the_region_is_refused():
    with pytest.raises(ValueError, match="8 bytes from 4 on, of 10"):
        tensors_of([[TensorSlice("y", dtypes.FP32, (2,), 4, 8)]], [0], bytes(10), 0)
