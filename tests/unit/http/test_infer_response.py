"""The compiled writer of v2 responses: text that reads as the same tensor, in one certain form."""

import json
import math

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core import dtypes
from core.errors import CoreError
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.http.codec.render import render
from frontends.http.native.infer_request import OutputForm
from frontends.http.native.infer_response import write, write_data

NUMBERS = [dtype for dtype in dtypes.ALL if dtype.byte_size and dtype.name not in ("FP16", "BF16")]
# From 10^least up to 10^most a number is written without an exponent.
PLAIN = {np.float32: (-6, 13), np.float64: (-5, 16)}


def text_of(value):
    """A float as JSON: Python's and numpy's fewest digits, set as numbers are set here."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if np.signbit(value) else ""
    if np.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    mantissa, exponent = np.format_float_scientific(abs(value), unique=True).split("e")
    digits, point = mantissa.replace(".", "").rstrip("0"), int(exponent) + 1
    least, most = PLAIN[type(value)]
    if least < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if 0 < point <= most:
        whole = digits.ljust(point, "0")
        return f"{sign}{whole[:point]}.{whole[point:] or '0'}"
    rest = f".{digits[1:]}" if digits[1:] else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}".replace("e+0", "e+").replace("e-0", "e-")


def written(array):
    return write_data(Tensor.of("y", array)).decode()


def response(*outputs, **more):
    return InferenceResponse("m", 3, list(outputs), **more)


# Numbers ----------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2**32 - 1), max_size=40))
@example([0, 1, 2**31, 2**23, 2**23 - 1, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000])
def test_singles_have_the_fewest_digits(bits):
    values = np.array(bits, "<u4").view("<f4")
    assert written(values) == f"[{','.join(map(text_of, values))}]"


@given(st.lists(st.integers(0, 2**64 - 1), max_size=40))
@example(
    [0, 1, 2**63, 2**52, 2**52 - 1, 0x7FEFFFFFFFFFFFFF, 0x7FF << 52, 0xFFF << 52, 0xFFF8 << 48]
)
def test_doubles_have_the_fewest_digits(bits):
    values = np.array(bits, "<u8").view("<f8")
    assert written(values) == f"[{','.join(map(text_of, values))}]"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_power_of_two_and_of_ten_and_its_neighbours(kind):
    limits = np.finfo(kind)
    powers = [2.0**n for n in range(limits.minexp - limits.nmant, limits.maxexp)]
    powers += [
        float(f"1e{n}") for n in range(int(np.log10(limits.tiny)), int(np.log10(limits.max)) + 1)
    ]
    middle = np.array(powers, kind)
    near = np.concatenate(
        [np.nextafter(middle, kind(0)), middle, -np.nextafter(middle, limits.max)]
    )

    found = written(near)

    assert found == f"[{','.join(map(text_of, near))}]"


@pytest.mark.parametrize("first", range(8))
def test_singles_of_the_whole_range_come_back_to_the_bit(first):
    values = np.arange(first * 2**29, (first + 1) * 2**29, 20_011, np.uint32).view(np.float32)
    values = values[np.isfinite(values)]

    text = written(values)

    again = np.array(json.loads(text), np.float64).astype(np.float32)
    assert again.tobytes() == values.tobytes()
    assert text.count(",") == max(len(values) - 1, 0)


@pytest.mark.parametrize("seed", range(4))
def test_doubles_of_the_whole_range_come_back_to_the_bit(seed):
    bits = np.random.default_rng(seed).integers(0, 2**64, 50_000, np.uint64)
    values = bits.view(np.float64)
    values = values[np.isfinite(values)]

    text = written(values)

    assert np.array(json.loads(text), np.float64).tobytes() == values.tobytes()
    assert sum(map(len, text[1:-1].split(","))) == sum(len(text_of(value)) for value in values)


@pytest.mark.parametrize("dtype", [dtype for dtype in NUMBERS if not dtype.name.startswith("FP")])
@given(data=st.data())
def test_integers_and_truths_are_written_as_python_writes_them(dtype, data):
    array = data.draw(hnp.arrays(dtype.numpy, st.integers(0, 30)))
    assert written(array) == json.dumps(array.tolist(), separators=(",", ":"))


@pytest.mark.parametrize("dtype", [dtype for dtype in NUMBERS if "INT" in dtype.name])
def test_integers_with_any_number_of_digits(dtype):
    limits = np.iinfo(dtype.numpy)
    near = {sign * 10**n + d for n in range(20) for d in (-1, 0, 1) for sign in (1, -1)}
    values = sorted(x for x in near | {limits.min, limits.max} if limits.min <= x <= limits.max)

    assert json.loads(written(np.array(values, dtype.numpy))) == values


@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_large_array_is_written_as_its_pieces_are(dtype):
    octets = np.random.default_rng(1).integers(0, 256, 400_000, np.uint8)
    values = (octets % 2).astype(bool) if dtype is dtypes.BOOL else octets.view(dtype.numpy)
    pieces = [written(values[at : at + 1000])[1:-1] for at in range(0, len(values), 1000)]

    assert written(values) == f"[{','.join(pieces)}]"


# Texts ------------------------------------------------------------------------------------


@given(st.lists(st.text(max_size=10), max_size=8))
@example([chr(i) for i in range(0x90)])
def test_strings_are_written_as_orjson_writes_them(items):
    array = np.array([item.encode() for item in items], object)
    assert written(array).encode() == orjson.dumps(items)


@given(st.lists(st.binary(max_size=10), max_size=8))
def test_bytes_of_invalid_text_are_unchanged(items):
    found = write_data(Tensor.of("y", np.array(items, object)))
    assert json.loads(found.decode("utf-8", "surrogateescape")) == [
        item.decode("utf-8", "surrogateescape") for item in items
    ]


def test_large_strings_are_written_as_small_ones_are():
    items = [f'"{i}\n' * 7 for i in range(10_000)]
    assert written(np.array([item.encode() for item in items], object)).encode() == orjson.dumps(
        items
    )


@pytest.mark.parametrize(
    "raw", [b"", b"\x01", b"\x02\0\0\0a", b"\x01\0\0\0ab", b"\xff\xff\xff\xff"]
)
def test_strings_that_are_not_whole_are_not_written(raw):
    with pytest.raises(ValueError, match="which are not 1 elements"):
        write_data(Tensor("y", dtypes.BYTES, (1,), raw=raw))


@pytest.mark.parametrize("size", [0, 3, 5, 8, 10**6])
def test_bytes_that_are_not_those_of_the_shape_are_not_written(size):
    with pytest.raises(ValueError, match=f"has {size} bytes, which are not 1 elements"):
        write_data(Tensor("y", dtypes.FP32, (1,), raw=bytes(size)))


# Responses --------------------------------------------------------------------------------


@given(
    names=st.lists(st.text(max_size=5), max_size=3, unique=True),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0),
    texts=st.tuples(st.text(max_size=5), st.text(min_size=1, max_size=5)),
    version=st.integers(1, 2**63 - 1),
    parameters=st.dictionaries(
        st.text(max_size=3), st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
    ),
    binary=st.booleans(),
)
def test_a_response_equals_that_of_python(names, shape, texts, version, parameters, binary):
    id, model = texts
    array = np.ones(shape, np.int32)
    outputs = [Tensor.of(name, array) for name in names]
    expected = {"id": id} if id else {}
    expected |= {"model_name": model, "model_version": str(version)}
    expected |= {"parameters": parameters} if parameters else {}
    last = (
        {"parameters": {"binary_data_size": array.nbytes}} if binary else {"data": [1] * array.size}
    )
    expected["outputs"] = [
        {"name": name, "datatype": "INT32", "shape": list(shape), **last} for name in names
    ]

    made = InferenceResponse(model, version, outputs, id=id, parameters=parameters)
    json_size, parts = write(made, OutputForm(default=binary))

    tail = array.tobytes() * len(names) if binary else b""
    text = b"".join(parts)[: -len(tail) or None]
    assert text == orjson.dumps(expected)
    assert b"".join(parts)[len(text) :] == tail
    assert json_size == (len(text) if tail else 0)


def test_large_outputs_are_parts_of_their_own_and_are_not_joined():
    small = Tensor.of("small", np.arange(3, dtype=np.int8))
    large = Tensor.of("large", np.zeros(100_000, np.float32))
    binary = Tensor("binary", dtypes.UINT8, (200_000,), raw=bytes(200_000))

    json_size, parts = write(
        response(small, large, binary, small), OutputForm(listed={"binary": True})
    )

    assert [len(part) for part in parts[1::2]] == [400_001, 200_000]
    assert parts[-1] is binary.raw
    assert json_size == sum(map(len, parts[:-1]))
    outputs = json.loads(b"".join(parts[:-1]))["outputs"]
    assert [entry.get("data", [None])[0] for entry in outputs] == [0, 0, None, 0]
    assert render(response(large), OutputForm()).body == b"".join(
        write(response(large), OutputForm())[1]
    )


def test_an_output_that_is_refused_leaves_no_trace_in_the_next_answer():
    half = Tensor("h", dtypes.FP16, (1,), raw=b"\0\x3c")
    before = write(response(), OutputForm())

    with pytest.raises(CoreError):
        write(response(half), OutputForm())

    assert write(response(), OutputForm()) == before


@settings(max_examples=20)
@given(st.integers(0, 5000))
def test_names_of_any_length(size):
    name = "\n" * size
    (output,) = json.loads(render(response(Tensor.of(name, np.zeros(1))), OutputForm()).body)[
        "outputs"
    ]
    assert output["name"] == name
