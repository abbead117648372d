"""classify and regress: what the outputs of a model mean, for each datatype and shape."""

import numpy as np
import pytest
from frontend_tfserving.classes import classes_of, values_of

from core import dtypes
from core.config import OutputSpec, Signature
from core.errors import CoreError
from core.tensor import Tensor


def signature(*outputs):
    specs = {each.name: OutputSpec(each.name, each.dtype, (-1,)) for each in outputs}
    return Signature("model", 1, {}, specs, max_batch_size=4, decoupled=False)


def bf16(name, rows):
    """A tensor whose elements are the upper halves of FP32 numbers, as core has BF16."""
    halves = (np.array(rows, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return Tensor(name, dtypes.BF16, halves.shape, array=halves)


def texts(name, rows):
    array = np.array(rows, object)
    return Tensor(name, dtypes.BYTES, array.shape, array=array)


def classified(*outputs):
    return classes_of(signature(*outputs), {each.name: each for each in outputs})


def test_scores_of_bf16_are_numbers():
    (row,) = classified(bf16("scores", [[0.1, 0.7, 0.2]]))

    assert [label for label, _ in row] == ["0", "1", "2"]
    assert [score for _, score in row] == pytest.approx([0.1, 0.7, 0.2], rel=2**-7)


def test_values_of_bf16_are_numbers():
    output = bf16("outputs", [[0.5], [-3]])

    assert values_of(signature(output), {"outputs": output}) == [0.5, -3.0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint64])
def test_scores_of_other_datatypes_are_numbers(dtype):
    scores = Tensor.of("scores", np.array([[1, 3]], dtype))

    assert classified(scores) == [[("0", 1.0), ("1", 3.0)]]


def test_labels_of_the_output_classes_go_with_the_scores():
    scores = Tensor.of("scores", np.array([[0.25, 0.75]], np.float32))

    assert classified(scores, texts("classes", [[b"no", b"yes"]])) == [
        [("no", 0.25), ("yes", 0.75)]
    ]


@pytest.mark.parametrize("labels", [[[b"yes"], [b"no"]], [[b"a", b"b", b"c"]]])
def test_labels_of_another_shape_than_the_scores_are_refused(labels):
    scores = Tensor.of("scores", np.zeros((2, 3), np.float32))
    classes = texts("classes", labels)

    with pytest.raises(CoreError) as refused:
        classified(scores, classes)

    assert refused.value.kind.name == "UNSUPPORTED"
    for shape in (list(classes.shape), [2, 3]):
        assert str(shape) in str(refused.value)
