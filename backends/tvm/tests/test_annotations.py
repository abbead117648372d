"""Types of Relax are parsed without TVM."""

import time

import pytest
from backend_tvm.annotations import TensorType, tensor_type, tensor_types


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('R.Tensor((n, 3), dtype="float32")', ("float32", ("n", "3"))),
        ('R.Tensor((T.int64(2),), dtype="int8")', ("int8", ("2",))),
        ('R.Tensor((), dtype="bool")', ("bool", ())),
        ('R.Tensor((n * 2, T.max(n, 1)), dtype="int64")', ("int64", ("n * 2", "T.max(n, 1)"))),
        ('R.Tensor((T.int64(1), n), dtype="int8")', ("int8", ("1", "n"))),
        ('R.Tensor((n, T.int64(3), T.int64(4)), dtype="int8")', ("int8", ("n", "3", "4"))),
        ('R.Tensor((T.max(n, 1), 4), dtype="int64")', ("int64", ("T.max(n, 1)", "4"))),
        ('R.Tensor(dtype="float16", ndim=2)', ("float16", ("?", "?"))),
    ],
)
def test_types_of_tensors(text, found):
    assert tensor_type(text) == TensorType(*found)


@pytest.mark.parametrize(
    "text",
    ["R.Object", "R.Shape([n])", 'R.Tensor(dtype="float32")', "R.Tensor((2,))", "R.Tensor(ndim=2)"],
)
def test_types_that_are_no_tensor_of_a_known_rank(text):
    with pytest.raises(ValueError, match=r"no tensor|not known"):
        tensor_type(text)


def test_tuples_are_their_tensors_in_order():
    text = 'T.Tuple(R.Tensor((n,), dtype="int8"), R.Tuple(R.Tensor((2,), dtype="int16"), R.Tuple))'

    assert [each.dtype for each in tensor_types(text)] == ["int8", "int16"]


@pytest.mark.parametrize(
    "text",
    [
        "R.Tensor((" + '), dtype="a"' * 5000 + "x",
        'R.Tensor(dtype="int8", ndim=999999999)',
        "R.Tensor((" + "9" * 5000 + '), dtype="int8")',
        "R.Tuple(" * 5000 + ")" * 5000,
        "R.Tensor((" + "n, " * 50000 + ')dtype="int8")',
    ],
    ids=["datatypes", "rank", "number", "tuples", "letters"],
)
def test_hostile_types_are_refused_at_once(text):
    started = time.process_time()

    with pytest.raises(ValueError, match=r"no tensor|not known|too large|tuples|letters") as caught:
        tensor_types(text)

    assert time.process_time() - started < 1 and len(str(caught.value)) < 400
