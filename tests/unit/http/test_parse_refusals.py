"""Invalid bodies: each is refused with a text, and has no other effect."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.http.test_parse import LENGTH, TWO, binary

from core.errors import CoreError, Kind
from core.tensor import Tensor


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"1", b"null", b"{}", b"true"])
def test_a_request_must_have_inputs(refusal, body):
    assert "'inputs'" in refusal(body)


@pytest.mark.parametrize(
    "document",
    [
        *[{"inputs": value} for value in (None, {}, "x", 1, [1], [None], [[]], ["x"])],
        *[{"id": value, "inputs": []} for value in (5, None, True, [], {})],
        *[{"parameters": value, "inputs": []} for value in ([], 1, None, "x")],
        *[{"outputs": value, "inputs": []} for value in (None, {}, "x", 1, [1], [{}], [None])],
        *[{"outputs": [{"name": value}], "inputs": []} for value in (1, None, True, [])],
    ],
)
def test_a_member_of_another_type_is_refused(refusal, document):
    refusal(document)


@pytest.mark.parametrize("missing", ["name", "datatype", "shape", "data"])
def test_an_input_needs_each_member(refusal, tensor, missing):
    entry = tensor([1])
    del entry[missing]
    assert f"'{missing}'" in refusal({"inputs": [entry]})


@pytest.mark.parametrize(
    "member,value",
    [
        *[("name", value) for value in (1, None, [], {})],
        *[("datatype", value) for value in (32, None, "FLOAT", "fp32", "")],
        *[
            ("shape", value)
            for value in (1, "1", None, ["1"], [1.0], [-1], [None], [True], [[1]], [2**63], [1e30])
        ],
    ],
)
def test_a_member_of_an_input_of_another_type_is_refused(refusal, tensor, member, value):
    refusal({"inputs": [{**tensor([1]), member: value}]})


def test_an_input_has_one_source(refusal, tensor):
    text = "Input must set only one of the following fields: 'data', 'binary_data_size' in "
    assert refusal({"inputs": [tensor([1, 2], binary_data_size=8)]}).startswith(text)
    assert refusal({"inputs": [tensor([1], shared_memory_region="r")]}).endswith(
        "But set 'data' 'shared_memory_region'"
    )
    assert refusal({"inputs": [{"name": "x"}]}).endswith("But no field is set")


def test_an_unknown_region_of_shared_memory_is_not_found(refusal, tensor):
    entry = {**binary(4, [1]), "parameters": {"shared_memory_region": "r"}}
    for document in (
        {"inputs": [entry]},
        {
            "inputs": [tensor([1])],
            "outputs": [{"name": "a", "parameters": {"shared_memory_region": "r"}}],
        },
    ):
        text = refusal(document, kind=Kind.NOT_FOUND)
        assert text == "Unable to find shared memory region: 'r'"


@pytest.mark.parametrize("other", ["classification", "binary_data"])
def test_an_output_in_shared_memory_has_no_other_form(refusal, tensor, other):
    options = {"shared_memory_region": "r", other: 1 if other == "classification" else True}
    text = refusal({"inputs": [tensor([1])], "outputs": [{"name": "a", "parameters": options}]})
    assert text == f"Output can't set both 'shared_memory_region' and '{other}'"


def test_an_input_comes_once(refusal, tensor):
    text = refusal({"id": "q", "inputs": [tensor([1]), tensor([1])]})
    assert text == "[request id: q] input 'x' already exists in request"


@pytest.mark.parametrize(
    "key,value",
    [
        *[("sequence_id", value) for value in (-1, 1.5, True, None, [], 2**64)],
        *[("sequence_start", value) for value in (1, "true", None)],
        *[("sequence_end", value) for value in (0, "x", None)],
        *[("priority", value) for value in (-1, "1", 1.5, True, None)],
        *[("timeout", value) for value in (-1, "5", 1.5, True, None)],
        *[("binary_data_output", value) for value in (1, "true", None)],
        *[("own", value) for value in (None, [], {}, [1])],
        ("triton_own", 1),
    ],
)
def test_a_parameter_of_another_type_is_refused(refusal, tensor, key, value):
    text = refusal({"parameters": {key: value}, "inputs": [tensor([1])]})
    assert key in text or "triton_" in text


@pytest.mark.parametrize("key", ["binary_data", "classification"])
@pytest.mark.parametrize("value", [-1, "1", 1.5, None, []])
def test_an_option_of_an_output_of_another_type_is_refused(refusal, tensor, key, value):
    outputs = [{"name": "a", "parameters": {key: value}}]
    assert f"'{key}'" in refusal({"inputs": [tensor([1])], "outputs": outputs})


def test_json_has_a_limit(refusal, tensor):
    text = refusal({"inputs": [tensor([1] * 100)]}, most=99)
    assert "exceeds the maximum allowed input size of 99 bytes" in text


def test_a_request_has_a_bounded_number_of_parts(refusal, tensor):
    many = range(10_001)
    for what, value in (
        ("inputs", [1 for _ in many]),
        ("outputs", [{"name": "a"} for _ in many]),
        ("parameters", {str(i): i for i in many}),
    ):
        text = refusal({"inputs": [tensor([1])], what: value})
        assert text == f"the request has 10001 {what}; 10000 are the most"
    text = refusal({"inputs": [tensor([1], [1] * 101)]})
    assert text == "input 'x' has a shape of 101 dimensions; 100 are the most"


# Anything ------------------------------------------------------------------------------

GOOD = {
    "id": "a",
    "parameters": {"sequence_id": 1, "own": "x"},
    "inputs": [
        {"name": "x", "datatype": "FP32", "shape": [2, 1], "data": [[1.5], [2]]},
        {"name": "s", "datatype": "BYTES", "shape": [1], "data": ["a"]},
        binary(8, [2], name="b"),
    ],
    "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
}


def attempt(parsed, *args, **kwargs):
    """Parse, and use what came out; the only way to fail is a refusal."""
    try:
        request, _ = parsed(*args, **kwargs)
    except CoreError as error:
        assert error.kind in (Kind.INVALID, Kind.NOT_FOUND)
        return
    for tensor in request.inputs.values():
        assert isinstance(tensor, Tensor) and len(memoryview(tensor.raw)) >= 0
        assert all(0 <= size < 2**63 for size in tensor.shape)


leaves = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2**31, 2**63, 2**64, 10**30, 0.5, 1e300, "", "x", "FP32", "BYTES"])
)
# A busy machine takes its time, and the fixture has no state.
LOADED = settings(suppress_health_check=list(HealthCheck), max_examples=300)
KEYS = (
    "id inputs outputs parameters name datatype shape data binary_data_size classification "
    "shared_memory_region sequence_id timeout"
)
anything = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(anything)
@LOADED
def test_any_json_is_parsed_or_refused(parsed, document):
    attempt(parsed, document)
    attempt(parsed, {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": document}]})
    attempt(parsed, {**GOOD, "parameters": document, "outputs": document}, TWO)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_a_request_with_wrong_bytes_is_parsed_or_refused(parsed, data):
    head = bytearray(json.dumps(GOOD).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(head) - 1))
        head[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    length = data.draw(st.just(len(head)) | st.integers(-2, len(head) + 10))

    attempt(parsed, bytes(head), TWO, {LENGTH: str(length)})


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_a_request_that_is_cut_is_refused(parsed, cut):
    body = json.dumps(GOOD).encode()
    if cut < len(body):
        attempt(parsed, body[:cut], b"")
