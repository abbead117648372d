"""Outputs of a model match its configuration, or are an error with the difference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import dtypes
from core.config.signature import OutputSpec, Signature
from core.errors import CoreError, Kind
from core.pipeline.answers.split import misfit, tensors_fit
from core.request import InferenceRequest
from core.tensor import Tensor


def signature(*dims, rows=8, decoupled=False, reshape=None, dtype=dtypes.FP32):
    spec = OutputSpec("y", dtype, tuple(dims), reshape)
    return Signature("m", 1, {}, {"y": spec}, rows, decoupled)


def request(rows):
    made = InferenceRequest("m", {})
    made.rows = rows
    return made


def check(shape, signature, rows=2, name="y", dtype=np.float32):
    tensors = [Tensor.of(name, np.zeros(shape, dtype))]
    specs = tuple(signature.outputs.values())
    fits = tensors_fit(tensors, request(rows), signature, specs)
    assert fits == tensors_fit(tensors, request(rows), signature)
    if not fits:
        raise misfit(tensors, request(rows), signature)


DIMS = st.lists(st.integers(-1, 3).filter(lambda dim: dim != 0), max_size=3)
SHAPES = st.lists(st.integers(0, 3), max_size=4)


@given(
    dims=DIMS, shape=SHAPES, rows=st.integers(0, 3), batches=st.booleans(), decoupled=st.booleans()
)
def test_a_shape_fits_if_each_dimension_fits(dims, shape, rows, batches, decoupled):
    expected = [-1 if decoupled else rows, *dims] if batches else dims
    fits = len(shape) == len(expected) and all(
        dim in (-1, size) for dim, size in zip(expected, shape, strict=True)
    )
    told = signature(*dims, rows=8 if batches else 0, decoupled=decoupled)

    if fits:
        check(shape, told, rows)
    else:
        with pytest.raises(CoreError) as error:
            check(shape, told, rows)
        assert error.value.kind is Kind.INTERNAL
        assert f"model 'm' gave output 'y' with shape {shape}" in error.value.message


def test_outputs_are_checked_against_the_shape_before_a_reshape():
    told = signature(1, reshape=(), rows=0)

    check((), told)
    with pytest.raises(CoreError, match=r"with shape \[1\], its configuration says \[\]$"):
        check((1,), told)


def test_an_output_must_have_the_datatype_of_the_configuration():
    with pytest.raises(CoreError, match="as FP64, its configuration says FP32"):
        check((2, 1), signature(1), dtype=np.float64)


def test_an_output_must_be_in_the_configuration():
    with pytest.raises(CoreError, match=r"unexpected inference output 'Y' for model 'm'.*\['y'\]"):
        check((2, 1), signature(1), name="Y")


def test_an_output_may_be_missing():
    assert tensors_fit([], request(1), signature(1))
