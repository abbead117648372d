"""config.pbtxt as text: valid forms, and the errors for invalid ones."""

# ruff: noqa: E501 (a searchable text stays on one line)

import pytest

from core.config import parse_text
from core.errors import CoreError, Kind


def refusal(text: str) -> str:
    with pytest.raises(CoreError) as caught:
        parse_text(text, "models/m/config.pbtxt")
    assert caught.value.kind is Kind.INVALID
    return caught.value.message


def test_every_spelling_of_text_format_is_read():
    config = parse_text(
        """
        # a comment
        name: 'm' backend: "py" "thon";
        max_batch_size: 0x10
        input: [ { name: "x", data_type: TYPE_FP32, dims: [ -1, 3 ] },
                 < name: "y" data_type: 8 dims: 1 dims: 2 > ]
        parameters: { key: "k" value: { string_value: "v" } }
        model_transaction_policy { decoupled: True }
        response_cache { enable: t }
        """,
        "test",
    )

    assert (config.name, config.backend, config.max_batch_size) == ("m", "python", 16)
    assert [list(io.dims) for io in config.input] == [[-1, 3], [1, 2]]
    assert config.input[1].data_type == 8
    assert config.parameters["k"].string_value == "v"
    assert config.model_transaction_policy.decoupled
    assert config.response_cache.enable


def test_an_error_names_the_file_the_line_and_the_column():
    assert refusal('name: "m"\n  max_batch_size: many').startswith(
        "failed to read text proto from models/m/config.pbtxt:2:19: "
    )


def test_a_byte_order_mark_is_named():
    """Editors on Windows write it, Triton refuses it, and no terminal shows it."""
    found = refusal('\ufeffname: "m"')

    assert found == (
        "failed to read text proto from models/m/config.pbtxt:1:1: it begins with a byte-order mark; save the file as UTF-8 without one"
    )
    assert parse_text('name: "\ufeffm"', "test").name == "\ufeffm"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max_batchsize: 3", "ModelConfig has no field 'max_batchsize'; did you mean 'max_batch_size'?"),
        ("inputs { }", "ModelConfig has no field 'inputs'; did you mean 'input'?"),
        ("input { dim: 3 }", "ModelInput has no field 'dim'; did you mean 'dims'?"),
        ("input { data_type: FP32 }", "DataType has no value FP32; did you mean TYPE_FP32?"),
        ("input { data_type: 'TYPE_FP32' }", "DataType has no value 'TYPE_FP32'; did you mean TYPE_FP32?"),
        ("input { data_type: type_fp32 }", "DataType has no value type_fp32; did you mean TYPE_FP32?"),
        ("parameters { keys: 'a' }", "ParametersEntry has no field 'keys'; did you mean 'key'?"),
        ("input { data_type: TYPE_FP3 }", "DataType has no value TYPE_FP3; did you mean TYPE_FP32?"),
            ("input { data_type: TYPE_FLOAT }", "its values are TYPE_INVALID, TYPE_BOOL, TYPE_UINT8"),
        ("input { format: NHWC }", "Format has no value NHWC; did you mean FORMAT_NHWC?"),
        ("instance_group { kind: cpu }", "Kind has no value cpu; did you mean KIND_CPU?"),
        ("dims: 3", "ModelConfig has no field 'dims'; it is a field of ModelInput and ModelOutput"),
        ("response_cache { q: 1 }", "ModelResponseCache has no field 'q'; its fields are enable"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_an_error_with_the_nearest_one(text, expected):
    assert expected in refusal(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # wrong types
        ("max_batch_size: 'a'", "1:17: Couldn't parse integer: 'a'"),
        ("max_batch_size: 1.5", "1:17: Couldn't parse integer: 1.5"),
        ("max_batch_size: true", "1:17: Couldn't parse integer: true"),
        ("input { dims: '3' }", "1:15: Couldn't parse integer: '3'"),
        ("name: 3", "1:7: Expected string but found: '3'"),
        ("name: m", "1:7: Expected string but found: 'm'"),
        ("name: { }", "1:7: Expected string but found: '{'"),
        ("response_cache { enable: 2 }", '1:26: Expected "true" or "false".'),
        ("response_cache { enable: 'true' }", '1:26: Expected "true" or "false".'),
        ("sequence_batching { direct { minimum_slot_utilization: half } }", "1:56: Couldn't parse float: half"),
        ("dynamic_batching: 3", '1:19: Expected "{".'),
        ("parameters { key: 'a' value: 'b' }", '1:30: Expected "{".'),
        ("dynamic_batching { priority_queue_policy { key: 'a' } }", "1:49: Couldn't parse integer: 'a'"),
        (r"name: '\xff'", "1:13: Couldn't parse string"),
        # numbers that do not fit
        ("max_batch_size: 99999999999", "1:17: Value out of range: 99999999999"),
        ("version_policy { latest { num_versions: -1 } }", "1:41: Value out of range: -1"),
        ("input {\n data_type: 99999999999 }", "2:13: Value out of range: 99999999999"),
        # twice, and what excludes each other
        ("max_batch_size: 1 max_batch_size: 2", '1:35: Message type "inference.ModelConfig" should not have multiple'),
        ("dynamic_batching {} sequence_batching {}", '1:21: Field "sequence_batching" is specified along with field "dynamic_batching"'),
        ("version_policy { latest { } all { } }", '1:29: Field "all" is specified along with field "latest"'),
        # braces, brackets, quotes, colons
        ("input { name: 'a'", '1:15: Expected "}".'),
        ("input { name: 'a' ] }", "1:19: Expected identifier or number, got ]."),
        ("input [ { name: 'a' }", '1:22: Expected ",".'),
        ("input { dims: [1 2] }", '1:18: Expected ",".'),
        ("input { dims: [1, ] }", "1:19: Couldn't parse integer: ]"),
        ("}", "1:1: Expected identifier or number, got }."),
        ("dynamic_batching", '1:17: Expected "{".'),
        ("name 'm'", '1:6: Expected ":".'),
        ("\nname: 'm", "2:7: String missing ending quote"),
        ("\0", "1:1: Expected identifier"),
        ("[a.b]: 3", '1:4: Message type "inference.ModelConfig" does not have extensions.'),
    ],
)  # fmt: skip
def test_other_errors_have_the_field_and_the_found_value(text, expected):
    assert refusal(text).startswith(
        f"failed to read text proto from models/m/config.pbtxt:{expected}"
    )


def test_no_text_is_an_empty_configuration():
    assert parse_text("", "test").ByteSize() == 0
