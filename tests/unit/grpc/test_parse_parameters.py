"""Parameters of a ModelInferRequest, of its inputs and of its outputs, with messages of the real client."""

import pytest
from unit.grpc.both_codecs import parsed, refusal
from unit.grpc.test_parse import request

from core.errors import Kind
from core.request import SEQUENCE_END, SEQUENCE_START
from frontends.grpc.protocol.parse import wants_empty_final


def with_parameter(name, **value):
    message = request(raw=[b"1234"])
    message.parameters[name].SetInParent()
    for field, content in value.items():
        setattr(message.parameters[name], field, content)
    return message


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
