"""Numbers in the data of a request: the compiled reader reads them as Python does, or leaves them to it."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.http.both_readers import agreed, left, numbers, read
from unit.http.drawn_requests import INTEGERS, literals

from core import dtypes


@given(st.lists(literals, min_size=1, max_size=6), st.sampled_from(dtypes.ALL))
@settings(max_examples=200)
def test_both_readers_read_the_same_numbers(items, dtype):
    agreed(numbers(dtype, ",".join(items).encode(), len(items)))


@pytest.mark.parametrize("dtype", [dtypes.FP32, dtypes.FP64])
@given(items=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50))
def test_finite_floats_are_taken_with_any_number_of_digits(dtype, items):
    bits = np.array(items, "<u8").view(dtype.numpy)
    values = np.where(np.isfinite(bits), bits, 1)
    for digits in (9, 17, 25):
        text = ",".join(f"{value:.{digits}g}" for value in values.tolist())
        request, _ = read(numbers(dtype, text.encode(), len(values)))

        expected = np.array(json.loads(f"[{text}]"), np.float64).astype(dtype.numpy)
        assert bytes(request.inputs["x"].raw) == expected.tobytes()


@given(
    st.integers(2**52, 2**53 - 1),
    st.sampled_from(["{}.5", "{}.499", "{}.501", "{}5e-1", "-{}.50", "{}.50000000000000000001"]),
)
def test_numbers_in_the_middle_between_two_doubles_go_to_the_even_one(below, form):
    text = form.format(below)

    request, _ = read(numbers(dtypes.FP64, text.encode(), 1))

    assert request.inputs["x"].array.tolist() == [float(text)]


@given(st.integers(0, 10**25), st.integers(-345, 330), st.integers(0, 25))
@settings(max_examples=500)
def test_digits_with_any_exponent_are_read_as_python_reads_them(digits, exponent, zeros):
    for text in (
        f"{digits}e{exponent}",
        f"0.{'0' * zeros}{digits}e{exponent}",
        f"-{digits}.{digits}E+0",
    ):
        if math.isfinite(float(text)):
            request, _ = read(numbers(dtypes.FP64, text.encode(), 1))

            assert request.inputs["x"].array.tobytes() == np.float64(text).tobytes()


@pytest.mark.parametrize(
    "text",
    ["18446744073709551616.0", "-18446744073709551616", "1844674407370955161.60", "-0.0", "0e5"],
)
def test_digits_that_do_not_fit_into_64_bits_are_not_lost(text):
    request, _ = read(numbers(dtypes.FP64, text.encode(), 1))

    assert request.inputs["x"].array.tobytes() == np.float64(text).tobytes()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_taken_to_their_limits_and_left_beyond_them(dtype):
    limits = np.iinfo(dtype.numpy)
    least, most = int(limits.min), int(limits.max)

    request, _ = read(numbers(dtype, b"%d,%d,-0" % (least, most), 3))

    assert request.inputs["x"].array.tolist() == [least, most, 0]
    for wrong in (
        str(least - 1),
        str(most + 1),
        str(most + 10**20),
        "1.0",
        "1e2",
        "01",
        "",
        "true",
    ):
        assert left(numbers(dtype, wrong.encode()))


@pytest.mark.parametrize("dtype", [dtypes.FP32, dtypes.FP64])
def test_numbers_that_are_not_finite_are_taken(dtype):
    request, _ = read(numbers(dtype, b"NaN,-NaN,Inf,-Inf,Infinity,-Infinity,-0.0", 7))

    expected = np.array([np.nan, np.nan, np.inf, -np.inf, np.inf, -np.inf, -0.0], dtype.numpy)
    assert bytes(request.inputs["x"].raw) == expected.tobytes()


@pytest.mark.parametrize("literal", ["1e400", "-1e400", "9" * 400, "9" * 5000])
def test_numbers_beyond_any_float_are_left_wherever_they_are(literal):
    assert left(numbers(dtypes.FP64, literal.encode()))
    assert left(b'{"own":%s,"inputs":[]}' % literal.encode())
