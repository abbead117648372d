"""The compiled reader of v2 requests, with the reader in Python as its oracle.

The compiled reader must read like the other, or leave the request to it. The tests below the first ones list
requests that it must not leave, since otherwise it would be useless.
"""

import json
import math
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import dtypes
from core.errors import CoreError
from core.request import InferenceRequest
from frontends.http.codec.parse import parse, parse_document
from frontends.http.native import infer_request
from frontends.shared.memory import SharedMemoryRegions

MOST = 2**18
REGIONS = SharedMemoryRegions(allowed=False)
CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus" / "http_json"
REQUEST = [name for name in dir(InferenceRequest("m", {})) if name[0] != "_" and name != "inputs"]
INTEGERS = [dtype for dtype in dtypes.ALL if "INT" in dtype.name]


@pytest.fixture
def region():
    """The name of a registered region of 64 bytes, and the regions that it is in."""
    path = Path(f"/dev/shm/core_unit_test_infer_request_{os.getpid()}")
    path.write_bytes(bytes(64))
    regions = SharedMemoryRegions(allowed=True)
    regions.register("r", f"/{path.name}", 0, 64)
    yield "r", regions
    path.unlink()


def described(found):
    """All that can be seen of a request and its form, to the bit."""
    request, form = found
    attributes = {
        name: getattr(request, name)
        for name in REQUEST
        if not callable(getattr(request, name)) and name != "outputs"
    }
    attributes["parameters"] = [
        (key, type(value), struct.pack("<d", value) if type(value) is float else value)
        for key, value in request.parameters.items()
    ]
    inputs = [
        (key, tensor.name, tensor.dtype, tensor.shape, bytes(tensor.raw))
        for key, tensor in request.inputs.items()
    ]
    outputs = [
        (output.name, output.class_count, output.memory, form.binary(output.name))
        for output in request.outputs
    ]
    default = None if outputs else form.binary("any")
    return attributes, inputs, outputs, default, set(form.placed)


def outcome(read, body, size, regions=REGIONS):
    """Return the result of reading: a request, or the text of the refusal."""
    try:
        found = read("m", -1, body, size, MOST, regions)
    except CoreError as error:
        return error.kind, error.message
    return None if found is None else described(found)


def agreed(head, tail=b"", regions=REGIONS):
    """The outcome for JSON and what follows it; that of the compiled reader is the same, or None."""
    body = head + tail
    expected = outcome(parse_document, body, len(head), regions)
    found = outcome(infer_request.read, body, len(head), regions)
    headers = {"Inference-Header-Content-Length": str(len(head))}

    def whole(model, version, body, size, most, regions):
        return parse(model, version, None, headers, body, most, regions)

    assert found is None or found == expected
    if 0 < len(head) <= MOST:
        assert outcome(whole, body, len(head), regions) == expected
    return found


def read(head, tail=b""):
    """The request, which the compiled reader takes."""
    body = head if isinstance(head, bytes) else json.dumps(head).encode()
    assert agreed(body, tail) is not None, body
    return infer_request.read("m", -1, body + tail, len(body), MOST, REGIONS)


def left(head, tail=b""):
    """Return whether the compiled reader leaves it to the other one."""
    body = head if isinstance(head, bytes) else json.dumps(head).encode()
    return agreed(body, tail) is None


def numbers(dtype, text, count=1):
    """A request with one input of these elements."""
    head = b'{"inputs":[{"name":"x","datatype":"%s","shape":[%d],"data":[%s]}]}'
    return head % (dtype.name.encode(), count, text)


# Whole requests ---------------------------------------------------------------------------

texts = st.text(max_size=8) | st.sampled_from(
    ["\0", '"\\/', "\u00e4\U0001f600", "\x7f\n\t", "x" * 70]
)
spaces = st.sampled_from(["", "", "", " ", "\n\t\r "])
WORDS = [
    "NaN", "Infinity", "-Infinity", "Inf", "-Inf", "-NaN", "-0", "-0.0", "0e5", "1E+2", "1.5e-3", "5e-324",
    "1e-400", "1e400", "3.5e38", "3.4028235677973366e38", "1.00000005960464477539", "9007199254740993",
    "18446744073709551616", "0.1000000000000000055511151231257827", "123456789012345678901234567890e-20",
    "01", "1.", ".5", "+1", "--1", "1e", "true1", "nul", "Infinit", "inf", "nan", "0x1", "1_0", "- 1",
]  # fmt: skip
literals = (
    st.sampled_from(WORDS)
    | st.integers(-(2**65), 2**65).map(str)
    | st.sampled_from([2**n + d for n in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, 0, 1)]).map(
        str
    )
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda x: str(np.float32(x)))
    | st.decimals(-1000, 1000, places=5).map(str)
)


class Literal(str):
    """JSON text that is written unchanged."""


@st.composite
def written(draw, value):
    """A JSON value as text: any order of members, any spaces, strings escaped in any way."""
    if isinstance(value, Literal):
        return value
    if isinstance(value, dict):
        keys = draw(st.permutations(list(value)))
        members = [
            f"{draw(written(key))}{draw(spaces)}:{draw(spaces)}{draw(written(value[key]))}"
            for key in keys
        ]
        return (
            "{"
            + draw(spaces)
            + (draw(spaces) + "," + draw(spaces)).join(members)
            + draw(spaces)
            + "}"
        )
    if isinstance(value, list):
        items = [draw(written(item)) for item in value]
        return "[" + draw(spaces) + ("," + draw(spaces)).join(items) + draw(spaces) + "]"
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    return text.replace("/", "\\/") if draw(st.booleans()) else text


@st.composite
def nested(draw, items):
    """Return the items, some of them in nested lists."""
    if not items or draw(st.integers(0, 3)):
        return items
    cut = draw(st.integers(0, len(items)))
    return [draw(nested(items[:cut])), *items[cut:]]


@st.composite
def entries(draw, name):
    """One input, mostly right, and the bytes that it has behind the JSON."""
    dtype = draw(st.sampled_from(dtypes.ALL))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    count = int(np.prod(shape))
    entry = {"name": name, "datatype": dtype.name, "shape": shape}
    if draw(st.integers(0, 3)) == 0:
        tail = draw(st.binary(max_size=40))
        entry["parameters"] = {"binary_data_size": len(tail)}
        return entry, tail
    if dtype is dtypes.BYTES:
        values = st.lists(texts, min_size=count, max_size=count)
    elif dtype is dtypes.BOOL:
        values = st.lists(st.booleans(), min_size=count, max_size=count)
    elif dtype in INTEGERS:
        limits = np.iinfo(dtype.numpy)
        one = st.integers(int(limits.min), int(limits.max))
        values = st.lists(one, min_size=count, max_size=count)
    else:
        values = st.lists(literals.map(Literal), min_size=count, max_size=count)
    entry["data"] = draw(nested(draw(values)))
    return entry, b""


parameters = st.fixed_dictionaries(
    {},
    optional={
        "sequence_id": st.integers(0, 2**64 - 1) | texts,
        "sequence_start": st.booleans(),
        "sequence_end": st.booleans(),
        "priority": st.integers(0, 2**64 - 1),
        "timeout": st.integers(0, 2**64 - 1),
        "binary_data_output": st.booleans(),
        "own": st.booleans() | texts | st.integers(-(2**64), 2**64) | literals.map(Literal),
        "\u00e4\n": st.floats(),
    },
)
outputs = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["y", "z", "\u00e4"])},
        optional={
            "parameters": st.fixed_dictionaries(
                {},
                optional={
                    "binary_data": st.booleans(),
                    "classification": st.integers(0, 3),
                    "own": st.none(),
                },
            )
        },
    ),
    max_size=3,
)


@st.composite
def requests(draw):
    """JSON text of a request, mostly right, and the bytes behind it."""
    names = draw(st.lists(texts, max_size=3))
    inputs, tails = [], []
    for name in names:
        entry, tail = draw(entries(name))
        inputs.append(entry)
        tails.append(tail)
    document = {"inputs": inputs}
    for member, values in (("id", texts), ("parameters", parameters), ("outputs", outputs)):
        if draw(st.booleans()):
            document[member] = draw(values)
    if draw(st.booleans()):
        document["own"] = draw(st.recursive(literals.map(Literal) | texts, st.lists, max_leaves=4))
    return draw(written(document)).encode("utf-8", "surrogatepass"), b"".join(tails)


@given(requests())
@settings(max_examples=200, deadline=None)
def test_both_readers_read_the_same(request):
    agreed(*request)


@given(requests(), st.sampled_from([b"", b"x", b"1234"]), st.integers(0, 5))
@settings(deadline=None)
def test_both_readers_want_the_tail_to_the_byte(request, more, less):
    head, tail = request
    agreed(head, tail + more)
    agreed(head, tail[: len(tail) - less])


@given(requests(), st.data())
@settings(max_examples=200, deadline=None)
def test_both_readers_agree_on_text_with_wrong_bytes(request, data):
    head, tail = bytearray(request[0]), request[1]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(head)))
        wrong = data.draw(
            st.binary(max_size=3) | st.sampled_from([b",", b"]", b"[", b'"', b"\\", b"{"])
        )
        head[at : at + data.draw(st.integers(0, 3))] = wrong
    agreed(bytes(head), tail)


@given(requests(), st.data())
@settings(deadline=None)
def test_both_readers_agree_on_members_that_come_twice(request, data):
    text, tail = request
    member = data.draw(
        st.sampled_from(
            [b'"id":"twice"', b'"inputs":[]', b'"outputs":[]', b'"parameters":{"own":1,"own":2}']
        )
    )
    agreed(b"{" + member + b"," + text.lstrip()[1:], tail)


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_both_readers_agree_on_the_corpus_of_the_fuzzer(path):
    agreed(path.read_bytes(), bytes(8))
    agreed(path.read_bytes())


# Numbers ----------------------------------------------------------------------------------


@given(st.lists(literals, min_size=1, max_size=6), st.sampled_from(dtypes.ALL))
@settings(max_examples=200, deadline=None)
def test_both_readers_read_the_same_numbers(items, dtype):
    agreed(numbers(dtype, ",".join(items).encode(), len(items)))


@pytest.mark.parametrize("dtype", [dtypes.FP32, dtypes.FP64])
@given(items=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50))
@settings(deadline=None)
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
@settings(deadline=None)
def test_numbers_in_the_middle_between_two_doubles_go_to_the_even_one(below, form):
    text = form.format(below)

    request, _ = read(numbers(dtypes.FP64, text.encode(), 1))

    assert request.inputs["x"].array.tolist() == [float(text)]


@given(st.integers(0, 10**25), st.integers(-345, 330), st.integers(0, 25))
@settings(max_examples=500, deadline=None)
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


# Requests that must not be left --------------------------------------------------------------


def test_a_large_tensor_is_read_without_the_lock():
    values = np.random.default_rng(1).standard_normal(15_000).astype(np.float32)
    text = ",\n".join(map(str, values)).encode()
    assert len(text) > 2**16

    request, _ = read(numbers(dtypes.FP32, text, len(values)))

    assert bytes(request.inputs["x"].raw) == values.tobytes()
    assert type(request.inputs["x"].raw) is bytes


def test_data_may_precede_its_datatype_and_shape():
    request, _ = read(
        b'{"inputs":[{"data":[[1],[2]],"parameters":{"own":1},"shape":[2],"datatype":"INT8","name":"x"}]}'
    )
    assert request.inputs["x"].array.tolist() == [1, 2]


@pytest.mark.parametrize("depth,taken", [(100, True), (101, False)])
def test_data_is_taken_a_hundred_deep(depth, taken):
    text = b"[" * (depth - 1) + b"1" + b"]" * (depth - 1)
    assert left(numbers(dtypes.INT8, text)) != taken


@pytest.mark.parametrize("depth", [90, 101, 1000, 100_000])
def test_an_unknown_member_may_be_deep(depth):
    assert left(b'{"own":' + b"[" * depth + b"]" * depth + b',"inputs":[]}') == (depth > 90)


def test_names_are_kept_from_one_request_to_the_next():
    first, _ = read({"inputs": [{"name": "kept", "datatype": "INT8", "shape": [1], "data": [1]}]})
    second, _ = read({"inputs": [{"name": "kept", "datatype": "INT8", "shape": [1], "data": [1]}]})

    assert first.inputs["kept"].name is second.inputs["kept"].name


@given(st.lists(texts, min_size=2, max_size=300, unique=True))
@settings(deadline=None)
def test_names_are_not_mistaken_for_each_other(names):
    entries = [
        {"name": name, "datatype": "INT8", "shape": [1], "data": [i % 100]}
        for i, name in enumerate(names)
    ]
    request, _ = read({"inputs": entries})
    assert list(request.inputs) == names


def test_a_form_that_all_outputs_have_is_shared():
    def form(*binary):
        listed = [
            {"name": str(i), "parameters": {"binary_data": on}} for i, on in enumerate(binary)
        ]
        return read({"inputs": [], "outputs": listed})[1]

    assert form(True) is form(True, True)
    assert form(False) is form()
    assert [form(True, False).binary(name) for name in "01"] == [True, False]


def test_shared_memory_is_found_by_both_readers(region):
    name, regions = region
    place = {"shared_memory_region": name, "shared_memory_offset": 8, "shared_memory_byte_size": 8}
    entry = {"name": "x", "datatype": "FP32", "shape": [2], "parameters": place}
    body = json.dumps({"inputs": [entry], "outputs": [{"name": "y", "parameters": place}]}).encode()

    assert agreed(body, regions=regions) is not None

    request, form = infer_request.read("m", -1, body, len(body), MOST, regions)
    assert request.shared and form.placed == {"y"}
    request.outputs[0].memory[:] = np.array([3, 4], "<f4").tobytes()
    assert request.inputs["x"].array.tolist() == [3, 4]


@pytest.mark.parametrize(
    "change",
    [{"shared_memory_region": "other"}, {"shared_memory_offset": 2**63}, {"binary_data": True}],
)
def test_errors_of_shared_memory_are_raised_by_python(region, change):
    name, regions = region
    place = {"shared_memory_region": name, "shared_memory_byte_size": 8} | change
    entry = {"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}
    body = json.dumps({"inputs": [entry], "outputs": [{"name": "y", "parameters": place}]}).encode()

    assert agreed(body, regions=regions) is None


def test_a_body_shorter_than_its_json_is_a_slip_of_the_caller():
    for size in (-1, 3):
        with pytest.raises(ValueError):
            infer_request.read("m", -1, b"{}", size, MOST, REGIONS)
