"""ModelInferRequest → InferenceRequest, with messages of the real client."""

import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb
from hypothesis import given
from hypothesis import strategies as st
from unit.grpc.test_infer_request import TYPED

from core import dtypes
from core.config.signature import InputSpec, Signature
from core.errors import CoreError, Kind
from core.request import SEQUENCE_END, SEQUENCE_START
from frontends.grpc.native.infer_request import RequestReader
from frontends.grpc.protocol.decode import MOST_ENTRIES
from frontends.grpc.protocol.parse import parse, read, wants_empty_final
from frontends.shared.memory import SharedMemoryRegions

NUMBERS = [dtype for dtype in dtypes.ALL if dtype is not dtypes.BYTES]
SAMPLE = {"bytes_contents": b"a", "bool_contents": True}
SIGNATURE = Signature("m", 1, {"x": InputSpec("x", dtypes.FP32, (-1,))}, {}, 0, False)


READER = RequestReader()


@pytest.fixture(autouse=True, scope="module")
def _compare(assert_same_request):
    """Check that the codec reads a message like `parse`."""
    global compare
    compare = assert_same_request


def parsed(message, regions=None):
    data = message.SerializeToString()
    at_once = READER.read(data)
    regions = regions or SharedMemoryRegions(allowed=False)
    try:
        found = parse(read(data), -1, SIGNATURE, regions)
    except CoreError:
        assert at_once is None
        raise
    if at_once is not None:
        compare(at_once, found)
    return found


def refusal(message):
    with pytest.raises(CoreError) as error:
        parsed(message)
    return error.value


def request(datatype="FP32", shape=(1,), raw=(), **fields):
    message = pb.ModelInferRequest(model_name="m", raw_input_contents=raw, **fields)
    message.inputs.add(name="x", datatype=datatype, shape=shape)
    return message


def with_parameter(name, **value):
    message = request(raw=[b"1234"])
    message.parameters[name].SetInParent()
    for field, content in value.items():
        setattr(message.parameters[name], field, content)
    return message


shapes = st.lists(st.integers(0, 5), max_size=4)


@st.composite
def tensors(draw):
    """(datatype, shape, bytes)"""
    shape = draw(shapes)
    count = int(np.prod(shape, dtype=int))
    dtype = draw(st.sampled_from(dtypes.ALL))
    if dtype is dtypes.BYTES:
        parts = draw(st.lists(st.binary(max_size=9), min_size=count, max_size=count))
        return dtype, shape, b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    size = count * dtype.byte_size
    return dtype, shape, draw(st.binary(min_size=size, max_size=size))


@given(st.lists(tensors(), max_size=5), st.text(max_size=9))
def test_raw_contents_become_the_inputs_in_their_order(inputs, id):
    message = pb.ModelInferRequest(model_name="m", id=id)
    for number, (dtype, shape, raw) in enumerate(inputs):
        message.inputs.add(name=f"x{number}", datatype=dtype.name, shape=shape)
        message.raw_input_contents.append(raw)

    found = parsed(message)

    assert (found.model_name, found.id) == ("m", id)
    assert list(found.inputs) == [f"x{number}" for number in range(len(inputs))]
    for tensor, (dtype, shape, raw) in zip(found.inputs.values(), inputs, strict=True):
        assert (tensor.dtype, tensor.shape, bytes(tensor.raw)) == (dtype, tuple(shape), raw)


@st.composite
def typed(draw):
    """(field, datatype, elements)"""
    field = draw(st.sampled_from(list(TYPED)))
    dtype = draw(st.sampled_from(TYPED[field]))
    if field == "bytes_contents":
        element = st.binary(max_size=9)
    elif field == "bool_contents":
        element = st.booleans()
    elif dtype.numpy.kind == "f":
        element = st.floats(width=dtype.byte_size * 8)
    else:
        limits = np.iinfo(dtype.numpy)
        element = st.integers(int(limits.min), int(limits.max))
    return field, dtype, draw(st.lists(element, min_size=1, max_size=20))


@given(typed())
def test_typed_contents_become_the_wire_form(content):
    field, dtype, elements = content
    message = request(dtype.name, [len(elements)])
    getattr(message.inputs[0].contents, field).extend(elements)

    found = parsed(message).inputs["x"]

    if dtype is dtypes.BYTES:
        assert found.array.tolist() == elements
    else:
        assert bytes(found.raw) == np.array(elements, dtype.numpy).tobytes()


@pytest.mark.parametrize(
    ("dtype", "field", "element", "kept"),
    [
        ("INT8", "int_contents", 300, 44),
        ("INT8", "int_contents", -300, -44),
        ("INT16", "int_contents", 2**31 - 1, -1),
        ("UINT8", "uint_contents", 256, 0),
        ("UINT16", "uint_contents", 2**32 - 1, 2**16 - 1),
    ],
)
def test_wide_elements_are_cut_to_the_datatype(dtype, field, element, kept):
    message = request(dtype)
    getattr(message.inputs[0].contents, field).append(element)

    assert parsed(message).inputs["x"].array.tolist() == [kept]


@pytest.mark.parametrize("field", list(TYPED))
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_elements_in_the_field_of_another_datatype_are_refused(field, dtype):
    if dtype in TYPED[field]:
        return
    message = request(dtype.name)
    getattr(message.inputs[0].contents, field).append(SAMPLE.get(field, 1))

    found = TYPED[field][-1].name
    assert refusal(message).message == (
        f"unexpected explicit tensor data for input tensor 'x' for model 'm' of type '{found}', "
        f"expected datatype '{dtype.name}'"
    )


def test_elements_in_two_fields_are_refused():
    message = request()
    message.inputs[0].contents.fp32_contents.append(1)
    message.inputs[0].contents.bytes_contents.append(b"a")

    assert refusal(message).message == (
        "unexpected explicit tensor data for input tensor 'x' for model 'm', binary data was "
        "already supplied."
    )


def test_empty_contents_are_a_tensor_without_bytes():
    message = request(shape=[0])
    message.inputs[0].contents.SetInParent()

    assert parsed(message).inputs["x"].byte_size == 0


def test_an_input_without_data_is_refused():
    assert refusal(request()).message == (
        "unable to find data for input tensor 'x' for model 'm' in request."
    )


def test_an_input_whose_raw_contents_are_missing_is_refused():
    message = request(raw=[b"1234"])
    message.inputs.add(name="z", datatype="FP32", shape=[1])

    assert "unable to find data for input tensor 'z'" in refusal(message).message


def test_surplus_raw_contents_are_ignored():
    found = parsed(request(raw=[b"1234", b"more"]))

    assert [bytes(tensor.raw) for tensor in found.inputs.values()] == [b"1234"]


def test_typed_and_raw_contents_exclude_each_other():
    message = request(raw=[b"1234"])
    message.inputs[0].contents.fp32_contents.append(1)

    assert refusal(message).message == (
        "contents field must not be specified when using raw_input_contents for 'x' for model 'm'"
    )


def test_an_input_that_comes_twice_is_refused():
    message = request(raw=[b"1234", b"1234"], id="r")
    message.inputs.add(name="x", datatype="FP32", shape=[1])

    assert refusal(message).message == "[request id: r] input 'x' already exists in request"


@pytest.mark.parametrize("name", ["NOPE", "", "fp32", "TYPE_FP32", "\u2603"])
def test_a_datatype_that_does_not_exist_is_named(name):
    assert refusal(request(name, raw=[b"1234"])).message == (
        f"[request id: <id_unknown>] inference input 'x' data-type is '{name}', but model 'm' "
        "expects 'FP32'"
    )


def test_a_datatype_that_does_not_exist_of_an_input_that_does_not_either():
    message = request("NOPE", raw=[b"1234"])
    message.inputs[0].name = "z"

    assert "unexpected inference input 'z' for model 'm'" in refusal(message).message


class TestBounds:
    def test_very_many_inputs_are_refused(self):
        message = pb.ModelInferRequest(model_name="m")
        for number in range(MOST_ENTRIES + 1):
            message.inputs.add(name=str(number))

        assert refusal(message).message == (
            "the request has more than 10000 inputs; 10000 are the most"
        )

    def test_very_many_outputs_are_refused(self):
        message = request(raw=[b"1234"])
        for number in range(MOST_ENTRIES + 1):
            message.outputs.add(name=str(number))

        assert "more than 10000 outputs" in refusal(message).message

    def test_very_many_parameters_are_refused(self):
        message = request(raw=[b"1234"])
        for number in range(MOST_ENTRIES + 1):
            message.parameters[str(number)].bool_param = True

        assert "more than 10000 parameters" in refusal(message).message

    def test_a_shape_of_very_many_dimensions_is_refused(self):
        assert refusal(request(raw=[b"1234"], shape=[1] * 1000)).message == (
            "[request id: <id_unknown>] input 'x' has a shape of 1000 dimensions; 100 are the most"
        )


class TestParameters:
    def test_custom_ones_keep_their_kind(self):
        message = request(raw=[b"1234"])
        message.parameters["a"].bool_param = True
        message.parameters["b"].int64_param = -7
        message.parameters["c"].string_param = "x"
        message.parameters["d"].double_param = 0.5

        found = parsed(message).parameters

        assert found == {"a": True, "b": -7, "c": "x", "d": 0.5}
        assert found["a"] is True

    def test_a_sequence(self):
        message = with_parameter("sequence_id", int64_param=12)
        message.parameters["sequence_start"].bool_param = True
        message.parameters["sequence_end"].bool_param = True

        found = parsed(message)

        assert (found.correlation_id, found.flags) == (12, SEQUENCE_START | SEQUENCE_END)
        assert not found.parameters

    def test_a_sequence_may_have_a_name(self):
        assert parsed(with_parameter("sequence_id", string_param="s")).correlation_id == "s"

    def test_a_negative_sequence_id_is_a_large_one(self):
        assert parsed(with_parameter("sequence_id", int64_param=-1)).correlation_id == 2**64 - 1

    def test_priority_and_timeout(self):
        message = with_parameter("priority", int64_param=2)
        message.parameters["timeout"].int64_param = 5000

        found = parsed(message)

        assert (found.priority, found.timeout_us) == (2, 5000)

    def test_priority_may_be_unsigned(self):
        assert parsed(with_parameter("priority", uint64_param=2**63)).priority == 2**63

    def test_an_empty_final_response_can_be_requested(self):
        message = with_parameter("triton_enable_empty_final_response", bool_param=True)

        assert not parsed(message).parameters
        assert wants_empty_final(message)
        assert not wants_empty_final(request())

    @pytest.mark.parametrize(
        ("name", "value", "text"),
        [
            ("sequence_id", {"uint64_param": 1}, "expected int64_param or string_param."),
            ("sequence_id", {}, "expected int64_param or string_param."),
            ("sequence_start", {"int64_param": 1}, "expected bool_param."),
            ("sequence_end", {"string_param": "true"}, "expected bool_param."),
            ("priority", {"string_param": "1"}, "expected int64_param or uint64_param."),
            ("timeout", {"uint64_param": 1}, "expected int64_param."),
            ("timeout", {"double_param": 1}, "expected int64_param."),
            ("triton_enable_empty_final_response", {"int64_param": 1}, "expected bool_param."),
            ("mine", {"uint64_param": 1}, "expected int64_param, bool_param, or string_param."),
            ("mine", {}, "expected int64_param, bool_param, or string_param."),
        ],
    )
    def test_a_value_of_the_wrong_kind_is_refused(self, name, value, text):
        assert refusal(with_parameter(name, **value)).message == (
            f"invalid value type for '{name}' parameter, {text}"
        )

    def test_a_negative_priority_is_refused(self):
        assert refusal(with_parameter("priority", int64_param=-1)).message == (
            "invalid value for 'priority', expected value >= 0."
        )

    @pytest.mark.parametrize("name", ["triton_", "triton_final_response", "triton_x"])
    def test_reserved_names_are_refused(self, name):
        assert refusal(with_parameter(name, bool_param=True)).message == (
            "parameter keys starting with 'triton_' are reserved for Triton usage. Only the "
            "following keys starting with 'triton_' are allowed: triton_enable_empty_final_response"
        )


class TestOutputs:
    @staticmethod
    def wanting(**parameters):
        message = request(raw=[b"1234"])
        entry = message.outputs.add(name="y")
        for name, (field, value) in parameters.items():
            setattr(entry.parameters[name], field, value)
        return message

    def test_none_means_all(self):
        assert parsed(request(raw=[b"1234"])).outputs == ()

    def test_classes_can_be_requested(self):
        message = self.wanting(classification=("int64_param", 3))
        message.outputs.add(name="z")

        found = parsed(message).outputs

        assert [(output.name, output.class_count) for output in found] == [("y", 3), ("z", 0)]

    def test_unknown_parameters_are_ignored(self):
        assert parsed(self.wanting(binary_data=("bool_param", True))).outputs[0].name == "y"

    @pytest.mark.parametrize("field", ["bool_param", "string_param", "uint64_param"])
    def test_the_number_of_classes_is_an_int64(self, field):
        value = {"bool_param": True, "string_param": "1", "uint64_param": 1}[field]

        assert refusal(self.wanting(classification=(field, value))).message == (
            "invalid value type for 'classification' parameter, expected int64_param"
        )

    @pytest.mark.parametrize("count", [0, -1])
    def test_there_is_at_least_one_class(self, count):
        assert refusal(self.wanting(classification=("int64_param", count))).message == (
            "invalid value for 'classification' parameter, expected >= 0"
        )

    def test_classes_do_not_go_to_shared_memory(self):
        message = self.wanting(
            classification=("int64_param", 1),
            shared_memory_region=("string_param", "R"),
            shared_memory_byte_size=("int64_param", 4),
        )

        assert refusal(message).message == (
            "output can't set both 'shared_memory_region' and 'classification'"
        )

    def test_an_output_that_comes_twice_is_refused(self):
        message = self.wanting()
        message.outputs.add(name="y")

        assert refusal(message).message.endswith("output 'y' already exists in request")


class TestSharedMemory:
    @staticmethod
    def using(**parameters):
        message = request()
        for name, (field, value) in parameters.items():
            setattr(message.inputs[0].parameters[name], field, value)
        return message

    REGION = ("string_param", "R")
    SIZE = ("int64_param", 4)

    def test_an_unknown_region_is_not_found(self):
        error = refusal(
            self.using(shared_memory_region=self.REGION, shared_memory_byte_size=self.SIZE)
        )

        assert error.kind is Kind.NOT_FOUND
        assert error.message == "Unable to find shared memory region: 'R'"

    def test_the_same_for_an_output(self):
        message = TestOutputs.wanting(
            shared_memory_region=self.REGION, shared_memory_byte_size=self.SIZE
        )

        assert refusal(message).kind is Kind.NOT_FOUND

    def test_contents_and_a_region_exclude_each_other(self):
        message = self.using(shared_memory_region=self.REGION, shared_memory_byte_size=self.SIZE)
        message.inputs[0].contents.fp32_contents.append(1)

        assert refusal(message).message == (
            "unexpected 'content' provided when using shared memory for input tensor 'x' for model "
            "'m'"
        )

    @pytest.mark.parametrize(
        ("parameters", "text"),
        [
            (
                {"shared_memory_region": REGION},
                "'shared_memory_byte_size' must be specified along with 'shared_memory_region' "
                "parameter for tensor 'x'",
            ),
            (
                {"shared_memory_byte_size": SIZE},
                "'shared_memory_byte_size' can not be specified without 'shared_memory_region' "
                "parameter for tensor 'x'",
            ),
            (
                {"shared_memory_region": SIZE},
                "invalid value type for 'shared_memory_region' parameter for tensor 'x', expected "
                "string_param.",
            ),
            (
                {"shared_memory_region": REGION, "shared_memory_byte_size": REGION},
                "invalid value type for 'shared_memory_byte_size' parameter for tensor 'x', "
                "expected int64_param.",
            ),
            (
                {
                    "shared_memory_region": REGION,
                    "shared_memory_byte_size": SIZE,
                    "shared_memory_offset": REGION,
                },
                "invalid value type for 'shared_memory_offset' parameter for tensor 'x', expected "
                "int64_param.",
            ),
        ],
    )
    def test_parameters_must_be_complete_and_of_the_right_kind(self, parameters, text):
        assert refusal(self.using(**parameters)).message == text
