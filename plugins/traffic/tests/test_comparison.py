"""Which answers are equal, and what is said of a difference."""

import numpy as np
import pytest
from core_traffic import comparison
from core_traffic.comparison import Comparison, Tolerance

from core import dtypes
from core.errors import internal, unavailable
from core.tensor import Tensor

NAN, INF = float("nan"), float("inf")


def tensors(**arrays):
    return [
        each if isinstance(each, Tensor) else Tensor.of(name, each) for name, each in arrays.items()
    ]


def compare(one, other, outputs=None, **tolerance):
    found = Comparison(Tolerance(**tolerance), outputs).of_answers(
        [tensors(y=one)], [tensors(y=other)], (1, 1)
    )
    return found


def floats(*values, dtype=np.float32):
    return np.array(values, dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_planted_difference_is_found_with_its_place(dtype):
    one = np.linspace(0, 1, 24, dtype=dtype).reshape(2, 3, 4)
    other = one.copy()
    other[1, 0, 2] += dtype(1e-3)

    found = compare(one, other)

    assert found.pop("difference") == pytest.approx(1e-3, rel=0.3 if dtype is np.float16 else 1e-3)
    assert found == {
        "what": "value", "output": "y", "index": [1, 0, 2], "caller": one[1, 0, 2].item(),
        "shadow": other[1, 0, 2].item(), "differing": 1, "elements": 24,
    }  # fmt: skip
    assert compare(one, other, atol=2e-3) is None


def test_the_largest_difference_of_several_is_shown():
    found = compare(floats(1, 2, 3, 4), floats(1.1, 2, 3.5, 4.2))

    assert (found["index"], found["differing"]) == ([2], 3)


def test_differences_are_found_beyond_one_part(monkeypatch):
    monkeypatch.setattr(comparison, "_AT_ONCE", 4)
    one = np.zeros(11, np.float32)
    other = one.copy()
    other[[3, 9]] = (1, 2)

    found = compare(one, other)

    assert (found["index"], found["differing"], found["difference"]) == ([9], 2, 2.0)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (NAN, NAN, True), (NAN, 1, False), (1, NAN, False), (INF, INF, True), (INF, -INF, False),
        (INF, 1, False), (0.0, -0.0, True), (100, 100.0005, True), (100, 100.01, False),
    ],
)  # fmt: skip
def test_special_floats(one, other, equal):
    found = compare(floats(one, 5), floats(other, 5))

    assert (found is None) is equal
    if not equal and not np.isfinite(one + other):
        assert found["difference"] is None and found["index"] == [0]
        assert {type(found["caller"]), type(found["shadow"])} <= {str, float}


def test_bf16_is_compared_as_numbers():
    def bf16(*values):
        bits = (np.array(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return Tensor("y", dtypes.BF16, bits.shape, array=bits)

    assert compare(bf16(1.0, 2.0), bf16(1.0, 2.0)) is None
    found = compare(bf16(1.0, 2.0), bf16(1.0, 4.0))
    assert (found["caller"], found["shadow"], found["difference"]) == (2.0, 4.0, 2.0)


def test_integers_truths_and_texts_must_be_equal():
    number = compare(np.array([[7], [9]]), np.array([[7], [4]]), atol=100.0)
    truth = compare(np.array([True, False]), np.array([True, True]), atol=100.0)
    text = compare(np.array([b"a", b"b" * 99], object), np.array([b"a", b"c"], object))

    assert (number["index"], number["caller"], number["shadow"]) == ([1, 0], 9, 4)
    assert (truth["index"], truth["caller"], truth["shadow"]) == ([1], False, True)
    assert (text["index"], text["caller"], text["shadow"]) == ([1], "b" * 60 + "…", "c")
    assert text["difference"] is None


def test_classes_may_be_compared_instead_of_numbers():
    one, other = floats(0.1, 0.7, 0.2).reshape(1, 3), floats(0.3, 0.4, 0.3).reshape(1, 3)

    assert compare(one, other, {"y": Tolerance(by_class=True)}) is None
    found = compare(one, other[:, ::-1] + floats(1, 0, 0), {"y": Tolerance(by_class=True)})
    assert (found["what"], found["index"], found["caller"], found["shadow"]) == ("class", [0], 1, 0)


def test_only_the_named_outputs_are_compared():
    one, other = tensors(y=floats(1), z=floats(2)), tensors(y=floats(1), z=floats(9))

    assert Comparison(outputs={"y": Tolerance()}).of_answers([one], [other], (1, 1)) is None
    assert Comparison().of_answers([one], [other], (1, 1))["output"] == "z"


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        (floats(1), floats(1, 2), {"what": "shape", "caller": [1], "shadow": [2]}),
        (floats(1), np.array([1]), {"what": "datatype", "caller": "FP32", "shadow": "INT64"}),
    ],
)
def test_shapes_and_datatypes_must_be_equal(one, other, what):
    assert compare(one, other) == {**what, "output": "y"}


def test_a_missing_output_is_a_difference():
    found = Comparison().of_answers([tensors(y=floats(1))], [[]], (1, 1))

    assert found == {"what": "outputs", "output": "y", "shadow": "it is not there"}


def test_errors_of_one_kind_are_equal():
    compared = Comparison().of_answers

    assert compared([internal("one")], [internal("other")], (1, 1)) is None
    found = compared([internal("one")], [unavailable("other")], (1, 1))
    assert found == {"what": "error", "caller": "one", "shadow": "other"}


def test_streams_are_compared_response_by_response():
    one = [tensors(y=floats(number)) for number in range(3)]
    other = [tensors(y=floats(number)) for number in (0, 1, 7)]

    assert Comparison().of_answers(one, one, (3, 3)) is None
    assert Comparison().of_answers(one, other, (3, 3))["response"] == 2
    assert Comparison().of_answers(one, one[:2], (3, 2)) == {
        "what": "responses", "caller": 3, "shadow": 2
    }  # fmt: skip


def test_tensors_without_elements_are_equal():
    assert compare(floats().reshape(0, 3), floats().reshape(0, 3)) is None
