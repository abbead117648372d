"""Bodies → requests: valid bodies, and the refusals of invalid ones."""

import json
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core import dtypes
from core.config import InputSpec, Signature
from frontends.http.codec.limits import natural_number
from frontends.http.codec.parse import parse
from frontends.http.native.infer_request import COPIED_BYTES
from frontends.shared.memory import SharedMemoryRegions

TWO = np.array([1, 2], "<f4").tobytes()
LENGTH = "Inference-Header-Content-Length"


def model(*inputs, max_batch_size=0):
    specs = {name: InputSpec(name, dtype, dims) for name, dtype, dims in inputs}
    return Signature("m", 1, specs, {}, max_batch_size, False)


def binary(size, shape, datatype="FP32", name="x"):
    return {
        "name": name,
        "datatype": datatype,
        "shape": shape,
        "parameters": {"binary_data_size": size},
    }


# Valid requests ---------------------------------------------------------------------


def test_a_request_without_options_has_their_defaults(parsed, tensor):
    request, form = parsed({"inputs": [tensor([1, 2])]})

    assert (request.model_name, request.model_version, request.id) == ("m", -1, "")
    assert (request.correlation_id, request.flags) == (0, 0)
    assert (request.priority, request.timeout_us) == (0, 0)
    assert (request.parameters, request.outputs) == ({}, ())
    assert not form.binary("y")
    assert list(request.inputs) == ["x"]
    assert request.inputs["x"].array.tolist() == [1, 2]


def test_options_of_a_request(parsed, tensor):
    request, form = parsed(
        {
            "id": "a",
            "parameters": {
                "sequence_id": 2**64 - 1,
                "sequence_start": True,
                "sequence_end": True,
                "priority": 3,
                "timeout": 5,
                "binary_data_output": True,
                "own": "word",
                "number": -7,
                "real": 1.5,
                "truth": False,
            },
            "inputs": [tensor([1])],
        }
    )

    assert request.id == "a"
    assert (request.correlation_id, request.flags) == (2**64 - 1, 3)
    assert (request.priority, request.timeout_us) == (3, 5)
    assert request.parameters == {"own": "word", "number": -7, "real": 1.5, "truth": False}
    assert form.binary("y")


def test_a_sequence_may_have_a_name(parsed, tensor):
    request, _ = parsed({"parameters": {"sequence_id": "mine"}, "inputs": [tensor([1])]})
    assert request.correlation_id == "mine"


def test_an_integer_that_no_signed_type_holds_becomes_a_float_parameter(parsed, tensor):
    request, _ = parsed({"parameters": {"own": 2**63}, "inputs": [tensor([1])]})
    assert (request.parameters, type(request.parameters["own"])) == ({"own": 2.0**63}, float)


def test_wanted_outputs_come_once_and_in_their_order(parsed, tensor):
    request, form = parsed(
        {
            "inputs": [tensor([1])],
            "outputs": [
                {"name": "b", "parameters": {"classification": 3}},
                {"name": "a", "parameters": {"binary_data": True}},
                {"name": "b", "parameters": {"binary_data": True}},
            ],
        }
    )

    assert [(output.name, output.class_count) for output in request.outputs] == [("b", 3), ("a", 0)]
    assert (form.binary("a"), form.binary("b")) == (True, False)


def test_the_default_form_is_not_that_of_listed_outputs(parsed, tensor):
    _, form = parsed(
        {
            "parameters": {"binary_data_output": True},
            "inputs": [tensor([1])],
            "outputs": [{"name": "a"}],
        }
    )
    assert not form.binary("a")


def test_unknown_members_are_ignored(parsed, tensor):
    entry = {**tensor([1], own=1), "own": {}}
    request, _ = parsed({"own": [1], "inputs": [entry], "outputs": [{"name": "a", "own": 1}]})
    assert request.inputs["x"].array.tolist() == [1]


@pytest.mark.parametrize("value", [1, [], None, "x"])
def test_parameters_of_a_tensor_that_are_no_object_are_ignored(parsed, tensor, value):
    entry = {**tensor([1]), "parameters": value}
    request, _ = parsed({"inputs": [entry], "outputs": [{"name": "a", "parameters": value}]})
    assert request.inputs["x"].array.tolist() == [1]


# Binary tensors ----------------------------------------------------------------------


@given(
    arrays=st.lists(
        st.sampled_from([dtype for dtype in dtypes.ALL if dtype is not dtypes.BYTES]).flatmap(
            lambda dtype: st.tuples(
                st.just(dtype),
                hnp.arrays(
                    dtype.numpy, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)
                ),
            )
        ),
        max_size=4,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_binary_tensors_of_any_shape_are_the_bytes_of_the_body(parsed, arrays):
    parts = [array.tobytes() for _, array in arrays]
    entries = [
        binary(len(part), list(array.shape), dtype.name, f"x{i}")
        for i, (part, (dtype, array)) in enumerate(zip(parts, arrays, strict=True))
    ]

    request, _ = parsed({"inputs": entries}, b"".join(parts))

    assert list(request.inputs) == [f"x{i}" for i in range(len(arrays))]
    for tensor, part, (dtype, array) in zip(request.inputs.values(), parts, arrays, strict=True):
        assert (tensor.dtype, tensor.shape, bytes(tensor.raw)) == (dtype, array.shape, part)
        assert memoryview(tensor.raw).readonly
        assert tensor.array.tobytes() == part


@pytest.mark.parametrize("convert", [bytes, bytearray, lambda data: memoryview(bytearray(data))])
@pytest.mark.parametrize("size,viewed", [(COPIED_BYTES, False), (COPIED_BYTES + 1, True)])
def test_a_binary_tensor_is_a_view_unless_it_is_small(convert, size, viewed):
    head = json.dumps({"inputs": [binary(size, [size], "UINT8")]}).encode()
    body = convert(head + bytes(range(256)) * 2 + b"x" * (size - 512))

    request, _ = parse(
        "m", -1, model(), {LENGTH: str(len(head))}, body, 2**20, SharedMemoryRegions(False)
    )

    raw = request.inputs["x"].raw
    assert bytes(raw) == bytes(body)[len(head) :]
    assert (type(raw) is memoryview) == viewed
    assert memoryview(raw).readonly
    if viewed:
        assert raw.obj is (body.obj if type(body) is memoryview else body)


@given(st.lists(st.binary(max_size=9), max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_binary_strings_are_unchanged(parsed, items):
    raw = b"".join(struct.pack("<I", len(item)) + item for item in items)

    request, _ = parsed({"inputs": [binary(len(raw), [len(items)], "BYTES")]}, raw)

    assert request.inputs["x"].array.tolist() == items


def test_binary_and_json_tensors_may_be_mixed(parsed, tensor):
    request, _ = parsed(
        {
            "inputs": [
                binary(8, [2], name="b"),
                tensor([5], name="j"),
                binary(4, [1], name="c"),
            ]
        },
        TWO + b"\0\0\x40\x40",
    )
    assert {name: t.array.tolist() for name, t in request.inputs.items()} == {
        "b": [1, 2],
        "j": [5],
        "c": [3],
    }


def test_a_tensor_gives_no_write_access_to_the_body(parsed):
    body = bytearray(json.dumps({"inputs": [binary(8, [2])]}).encode())
    request, _ = parsed(bytes(body), TWO)
    with pytest.raises(ValueError):
        request.inputs["x"].array[0] = 7


def test_spaces_after_the_json_belong_to_it(parsed):
    request, _ = parsed(json.dumps({"inputs": [binary(8, [2])]}).encode() + b"  ", TWO)
    assert request.inputs["x"].array.tolist() == [1, 2]


@pytest.mark.parametrize(
    "size,tail,text",
    [
        (8, TWO[:4], "unexpected size for input 'x', expecting 4 additional bytes for model 'm'"),
        (2**63, TWO, f"unexpected size for input 'x', expecting {2**63 - 8} additional bytes"),
        (8, TWO + b"more", "unexpected additional input data for model 'm'"),
        (0, TWO, "unexpected additional input data for model 'm'"),
        (-8, TWO, "Unable to parse 'binary_data_size'"),
        ("8", TWO, "Unable to parse 'binary_data_size'"),
        (8.0, TWO, "Unable to parse 'binary_data_size'"),
        (True, TWO, "Unable to parse 'binary_data_size'"),
        (2**64, TWO, "Unable to parse 'binary_data_size'"),
    ],
)
def test_binary_size_must_be_that_of_the_tail(refusal, size, tail, text):
    assert text in refusal({"inputs": [binary(size, [2])]}, tail)


def test_binary_data_after_no_json_length_is_missing(refusal):
    text = refusal({"inputs": [binary(8, [2])]})
    assert "unexpected size for input 'x', expecting 8 additional bytes" in text


@pytest.mark.parametrize(
    "length,text",
    [
        ("-5", "inference header size should be in range (0, "),
        ("100000", "inference header size should be in range (0, "),
        ("99999999999999999999", "value is out of range [ -2147483648, 2147483647 ], got: 9999"),
        ("9" * 5000, "value is out of range"),
        ("3000000000", "value is out of range"),
        ("abc", f"Unable to parse {LENGTH}, got: abc"),
        ("", f"Unable to parse {LENGTH}, got: "),
        ("0x10", f"Unable to parse {LENGTH}, got: 0x10"),
        ("2.5", f"Unable to parse {LENGTH}, got: 2.5"),
        ("\u0663", f"Unable to parse {LENGTH}, got: \u0663"),
        ("1", "failed to parse the request JSON buffer"),
        ("10", "failed to parse the request JSON buffer"),
    ],
)
def test_the_length_of_the_json_must_be_in_the_body(refusal, length, text):
    assert text in refusal({"inputs": [binary(8, [2])]}, TWO, {LENGTH: length})


# Raw requests ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "inputs,batch,body,shape",
    [
        ([("x", dtypes.FP32, (-1,))], 0, TWO, (2,)),
        ([("x", dtypes.FP32, (-1,))], 8, TWO, (1, 2)),
        ([("x", dtypes.FP32, (-1,))], 0, b"", (0,)),
        ([("x", dtypes.FP32, (2, -1))], 4, TWO * 3, (1, 2, 3)),
        ([("x", dtypes.FP32, (2,))], 0, TWO, (2,)),
        ([("x", dtypes.FP32, (0, -1))], 0, TWO, (0, 0)),
        ([("x", dtypes.FP32, (2, -1))], 0, TWO + TWO[:4], (2, 1)),
    ],
)
def test_a_raw_request_is_the_only_input(parsed, inputs, batch, body, shape):
    request, form = parsed(b"", body, {LENGTH: "0"}, signature=model(*inputs, max_batch_size=batch))

    tensor = request.inputs["x"]
    assert (tensor.shape, bytes(tensor.raw)) == (shape, body)
    assert form.binary("anything")


def test_an_empty_body_is_a_raw_request(parsed):
    request, _ = parsed(b"")
    assert request.inputs["x"].shape == (0,)


def test_a_raw_string_gets_its_length(parsed):
    request, _ = parsed(
        b"", b"hello", {LENGTH: "0"}, signature=model(("x", dtypes.BYTES, (1,)), max_batch_size=2)
    )
    assert request.inputs["x"].shape == (1, 1)
    assert request.inputs["x"].array.tolist() == [[b"hello"]]


@pytest.mark.parametrize(
    "inputs,text",
    [
        ([], "Raw request must only have 1 input (found 1) to be deduced but got 0 inputs in 'm'"),
        (
            [("x", dtypes.FP32, (1,)), ("z", dtypes.FP32, (1,))],
            "to be deduced but got 2 inputs in 'm' model configuration",
        ),
        (
            [("x", dtypes.FP32, (-1, -1))],
            "The shape of the raw input 'x' can not be deduced because there are more than one",
        ),
        (
            [("x", dtypes.BYTES, (-1,))],
            "For BYTE datatype raw input 'x', the model must have input shape [1]",
        ),
    ],
)
def test_a_raw_request_without_a_known_shape_is_refused(refusal, inputs, text):
    found = refusal(b"", TWO, {LENGTH: "0"}, signature=model(*inputs))
    assert found.startswith("[request id: <id_unknown>] ")
    assert text in found


def test_a_raw_input_has_a_limit(refusal):
    text = refusal(b"", bytes(11), {LENGTH: "0"}, most=10)
    assert "Raw input has a byte_size (11 bytes) that exceeds" in text


@given(
    st.text(alphabet="0123456789+- \u0663\udcffx", max_size=12) | st.integers(0, 10**10).map(str)
)
def test_a_natural_number_is_up_to_nine_digits(text):
    plain = text.isascii() and text.isdigit() and len(text) <= 9
    assert natural_number(text) == (int(text) if plain else -1)
