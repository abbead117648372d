"""Configurations that are refused. The texts are those that tritonserver answered or logged."""

# ruff: noqa: E501 (a text that somebody searches for stays on one line)

import pytest

from core.config import fill, normalise, parse_text, validate
from core.errors import CoreError, Kind

INPUT = 'input { name: "x" data_type: TYPE_FP32 dims: -1 } '
OUTPUT = 'output { name: "y" data_type: TYPE_FP32 dims: -1 } '
MODEL = 'backend: "python" ' + INPUT + OUTPUT
ENSEMBLE = 'platform: "ensemble" ' + INPUT + OUTPUT
BATCHING = MODEL + "max_batch_size: 4 "


def check(text: str, gpus: tuple[int, ...] = ()) -> None:
    config = parse_text(text, "test")
    fill(config, "m")
    normalise(config, {}, gpus)
    validate(config, gpus)


def refusal(text: str, gpus: tuple[int, ...] = ()) -> str:
    with pytest.raises(CoreError) as caught:
        check(text, gpus)
    assert caught.value.kind is Kind.INVALID
    return caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        MODEL,
        BATCHING + "dynamic_batching { }",
        BATCHING + "dynamic_batching { priority_queue_policy { key: 5 value { } } }",
        BATCHING + "sequence_batching { }",
        BATCHING + "sequence_batching { oldest { } state { } }",
        MODEL
        + 'instance_group [ { name: "g" }, { name: "g" }, { kind: KIND_MODEL passive: true } ]',
        'backend: "python"',
        'platform: "libtorch" ' + INPUT + OUTPUT,
        'backend: "mine" platform: "any" ' + INPUT + OUTPUT,
    ],
)
def test_a_sensible_configuration_passes(text):
    check(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('platform: "foo"', "unexpected platform type 'foo' for m"),
        ('platform: "foo" backend: "onnxruntime"', "unexpected 'platform' and 'backend' pair, got:foo, onnxruntime"),
        ('platform: "ensemble" backend: "python"', "Ensemble model 'm' must have platform type 'ensemble' and empty backend type"),
        (MODEL + "max_batch_size: -1", "'max_batch_size' must be non-negative value for m"),
        (MODEL + 'runtime: "../x.so"', "backend library name '../x.so' escapes backend directory, for model 'm', check model config runtime field"),
        (MODEL + "sequence_batching { } response_cache { enable: true }",
         "Response Cache does not currently support model m with sequence batching scheduler. Please disable the response cache."),
        (MODEL + "model_transaction_policy { decoupled: true } response_cache { enable: true }",
         "Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable the response cache."),
    ],
)  # fmt: skip
def test_general_rules(text, expected):
    assert refusal(text) == expected


def test_a_configuration_has_a_name_and_a_version_policy():
    config = parse_text(MODEL, "test")
    with pytest.raises(CoreError, match="model configuration must specify 'name'"):
        validate(config)

    config.name = "m"
    with pytest.raises(CoreError, match="must specify 'version policy' for m"):
        validate(config)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("preferred_batch_size: 0", "dynamic batching preferred size must be positive for m"),
        ("preferred_batch_size: 9", "dynamic batching preferred size must be <= max batch size for m"),
        ("priority_levels: 2", "default priority level must be in range [1, 2] for m"),
        ("priority_levels: 2 default_priority_level: 3", "default priority level must be in range [1, 2] for m"),
        ("priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 5 value { } }",
         "priority queue policy must have priority level in range [1, 2] for m"),
        ("priority_levels: 2 default_priority_level: 1 preserve_ordering: true",
         "Only one priority level is allowed when 'preserve_ordering' is true for m"),
        ("preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 }",
         "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m"),
        ("preserve_ordering: true priority_levels: 1 default_priority_level: 1 "
         "priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 1 } }",
         "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m"),
    ],
)  # fmt: skip
def test_rules_of_dynamic_batching(text, expected):
    assert refusal(BATCHING + f"dynamic_batching {{ {text} }}") == expected


START = "{ kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] }"
CORRID = "{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }"


def control(*controls: str, name: str = "C") -> str:
    return f'control_input {{ name: "{name}" control [ {", ".join(controls)} ] }} '


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (control(START, name=""), "sequence batching control tensor must have a name for m"),
        (control(START) * 2, "sequence batching control tensor 'C' is specified for multiple control kinds for m"),
        (control(START) + control(START, name="D"), "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m"),
        (control(CORRID, CORRID), "sequence batching specifies multiple CONTROL_SEQUENCE_CORRID tensors for m"),
        (control("{ kind: CONTROL_SEQUENCE_END }"),
         "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_END for m"),
        (control("{ kind: CONTROL_SEQUENCE_END fp32_false_true: [0, 1] int32_false_true: [0, 1] }"),
         "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for CONTROL_SEQUENCE_END for m"),
        (control("{ kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1, 2] }"),
         "sequence batching control 'int32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_READY for m"),
        (control("{ kind: CONTROL_SEQUENCE_READY bool_false_true: [true] }"),
         "sequence batching control 'bool_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_READY for m"),
        (control("{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32 }"),
         "unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"),
        (control("{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 int32_false_true: [0, 1] }"),
         "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_CORRID for m"),
        ("oldest { preferred_batch_size: 0 }", "sequence batching preferred batch size must be positive for m"),
        ("oldest { preferred_batch_size: 9 }", "sequence batching preferred batch size must be <= max batch size for m"),
        ("direct { minimum_slot_utilization: 1.5 }", "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m"),
        ("direct { minimum_slot_utilization: -0.5 }", "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m"),
        ("direct { minimum_slot_utilization: nan }", "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m"),
    ],
)  # fmt: skip
def test_rules_of_sequence_batching(text, expected):
    assert refusal(BATCHING + f"sequence_batching {{ {text} }}") == expected


def state(initial: str = "", dims: str = "4") -> str:
    return f'state {{ input_name: "i" output_name: "o" data_type: TYPE_INT32 dims: {dims} {initial} }} '


def initial(data_type="TYPE_INT32", dims="4", name='name: "n"', data="zero_data: true"):
    return f"initial_state {{ data_type: {data_type} dims: {dims} {name} {data} }} "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (state(initial() * 2), "initial_state field for state input 'i' must contain exactly one or zero element. Found '2' elements."),
        (state(initial()) * 2, "State input name 'i' specified more than once."),
        (state(initial(data_type="TYPE_FP32")), "The data type used for 'initial_state' field of state 'i' does not match the state data type."),
        (state(initial(name="")), "Field 'name' must be set when using initial_state for state input 'i'."),
        (state(initial(dims="[4, 1]")), "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 'i'. 2 != 1"),
        (state(initial(dims="-1"), dims="-1"), "'initial_state' field for state input name 'i' contains variable dimensions."),
        (state(initial(dims="5")), "'initial_state' dim for input name 'i' doesn't match 'state' dim description. 5 != 4"),
        (state(initial(data="")), "initial_state setting expects state 'i' to have state_data set"),
        (state(initial(data='data_file: "../../x"')), "initial_state data_file '../../x' in model 'm' is outside model directory"),
    ],
)  # fmt: skip
def test_rules_of_implicit_state(text, expected):
    assert refusal(BATCHING + f"sequence_batching {{ {text} }}") == expected


def test_an_initial_state_fixes_a_variable_dimension():
    check(BATCHING + f"sequence_batching {{ {state(initial(dims='5'), dims='-1')} }}")


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        ("data_type: TYPE_FP32 dims: 1", "must specify 'name' for m"),
        ('name: "x" dims: 1', "'x' must specify 'data_type' for m"),
        ('name: "x" data_type: 77 dims: 1', "'x' must specify 'data_type' for m"),
        ('name: "x" data_type: TYPE_FP32', "'x' must specify 'dims' for m"),
        ('name: "x" data_type: TYPE_FP32 dims: 0', "'x' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m"),
        ('name: "x" data_type: TYPE_FP32 dims: -2', "'x' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m"),
        ('name: "x" data_type: TYPE_FP32 dims: 1 reshape { }',
         "'x' cannot have empty reshape for non-batching model as scalar tensors are not supported for m"),
        ('name: "x" data_type: TYPE_FP32 dims: 1 reshape { shape: 0 }',
         "'x' reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension for m"),
        ('name: "x" data_type: TYPE_FP32 dims: 4 reshape { shape: [2, 3] }', "'x' has different size for dims and reshape for m"),
        ('name: "x" data_type: TYPE_FP32 dims: -1 reshape { shape: [2, 3] }', "'x' has different size for dims and reshape for m"),
        ('name: "x" data_type: TYPE_FP32 dims: [2, -1, 3] reshape { shape: [3, -1, 2] }', "'x' has different size for dims and reshape for m"),
        ('name: "x" data_type: TYPE_FP32 dims: -1 reshape { shape: [-1, -1] }',
         "'x' has different number of variable-size dimensions for dims and reshape for m"),
    ],
)  # fmt: skip
def test_rules_of_inputs_and_outputs(tensor, expected):
    assert refusal(f'backend: "python" input {{ {tensor} }}') == f"model input {expected}"
    assert refusal(f'backend: "python" output {{ {tensor} }}') == f"model output {expected}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('input { name: "i" data_type: TYPE_FP32 dims: 1 format: FORMAT_NHWC }', "model input NHWC/NCHW require 3 dims for m"),
        ('input { name: "i" data_type: TYPE_FP32 dims: 1 is_shape_tensor: true }', "shape tensors are only supported for TensorRT platform for m"),
        ('output { name: "o" data_type: TYPE_FP32 dims: 1 is_non_linear_format_io: true }',
         "Non-linear IO format is only supported for the TensorRT platform for m"),
        (INPUT, "model input 'x' is specified more than once for m"),
        ('batch_input { target_name: "t" data_type: TYPE_FP32 }', "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 0 for m"),
        ('batch_input { target_name: "t" data_type: TYPE_FP64 source_input: "x" }', "batch input data type must be TYPE_INT32 or TYPE_FP32 for m"),
        ('batch_input { target_name: "t" data_type: TYPE_FP32 source_input: "q" }', "unknown source input name 'q' for m"),
        ('batch_output { target_name: "y" }', "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0 for m"),
        ('batch_output { target_name: "y" source_input: "q" }', "unknown source input name 'q' for m"),
        ('batch_output { target_name: "q" source_input: "x" }', "unknown target output name 'q' for m"),
        ('batch_output { target_name: ["y", "y"] source_input: "x" }', "target output name 'y' can only be specified once for m"),
    ],
)  # fmt: skip
def test_further_rules_of_tensors(text, expected):
    assert refusal(MODEL + text) == expected


@pytest.mark.parametrize(
    ("dims", "shape"),
    [
        ("1", ""),
        ("[2, -1, 6]", "[2, 1, -1, 2, 3]"),
        ("[2, 4, -1, 6]", "[8, -1, 1, 6]"),
        ("4", "[2, 2]"),
    ],
)
def test_a_reshape_keeps_the_elements_in_place(dims, shape):
    shape = f"shape: {shape}" if shape else ""
    check(
        BATCHING + f'input {{ name: "r" data_type: TYPE_FP32 dims: {dims} reshape {{ {shape} }} }}'
    )


@pytest.mark.parametrize(
    ("group", "gpus", "expected"),
    [
        ("kind: KIND_CPU gpus: 0", (), "has kind KIND_CPU but specifies one or more GPUs"),
        ("kind: KIND_MODEL gpus: 0", (0,), "has kind KIND_MODEL but specifies one or more GPUs"),
        ("gpus: 5", (), "has kind KIND_CPU but specifies one or more GPUs"),
        ("kind: KIND_GPU", (), "has kind KIND_GPU but no GPUs are available"),
        ("kind: KIND_GPU gpus: 5", (), "specifies invalid or unsupported gpu id 5. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: "),
        ("kind: KIND_GPU gpus: 5", (1, 0), "specifies invalid or unsupported gpu id 5. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: 0, 1"),
        ('kind: KIND_CPU profile: "0"', (), "and platform specifies profile field which is only supported for TensorRT models"),
    ],
)  # fmt: skip
def test_rules_of_instance_groups(group, gpus, expected):
    text = MODEL + f"instance_group {{ {group} }}"

    assert refusal(text, gpus) == f"instance group m_0 of model m {expected}"


def test_a_profile_is_a_number():
    text = 'platform: "tensorrt_plan" ' + INPUT + OUTPUT

    check(text + 'instance_group { profile: "2" }', gpus=(0,))
    assert refusal(text + 'instance_group { profile: "-1" }', gpus=(0,)) == (
        "instance group m_0 of model m and platform tensorrt_plan specifies invalid profile -1. "
        "The field should contain the string representation of a non-negative integer."
    )


def warmup(inputs: str, batch_size: int = 1) -> str:
    value = f'inputs {{ key: "x" value {{ data_type: TYPE_FP32 {inputs} }} }}'
    return MODEL + f'model_warmup {{ name: "w" batch_size: {batch_size} {value} }}'


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ("dims: -1 zero_data: true", "warmup setting expects all variable-size dimensions are specified for input 'x'"),
        ("dims: 3", "warmup setting expects input 'x' to have input_data_type set"),
        ('dims: 3 input_data_file: "../../x"', "warmup input_data_file '../../x' in model 'm' is outside model directory"),
    ],
)  # fmt: skip
def test_rules_of_warmup(inputs, expected):
    assert refusal(warmup(inputs)) == expected


def test_a_warmup_sample_of_batch_size_0_is_switched_off():
    check(warmup("dims: -1", batch_size=0))


@pytest.mark.parametrize("path", ["/etc/passwd", "../../other/1/model.py", "a/../../../model.py"])
@pytest.mark.parametrize(
    "field", ['default_model_filename: "{}"', 'cc_model_filenames {{ key: "7.5" value: "{}" }}']
)
def test_a_model_file_outside_of_the_model_is_refused(field, path):
    expected = f"'{path}' in model 'm' is outside model directory"

    assert refusal(MODEL + field.format(path)).endswith(expected)


@pytest.mark.parametrize("path", ["a/model.py", "../shared.py", "a/../model.py", "..model.py"])
def test_a_model_file_may_be_anywhere_in_the_models_directory(path):
    check(MODEL + f'default_model_filename: "{path}"')


@pytest.mark.parametrize(
    ("control", "expected"),
    [
        ("", "metric control must specify 'metric_identifier'"),
        ("metric_identifier { }", "metric identifier must specify non-empty 'family'"),
        ('metric_identifier { family: "f" }', "metric control must specify 'histogram_options'"),
        ('metric_identifier { family: "f" } histogram_options { }', "histogram options must specify non-empty 'buckets'"),
        ('metric_identifier { family: "f" } histogram_options { buckets: [3, 1] }',
         "histogram options of 'f' must specify 'buckets' in ascending order, got [3.0, 1.0]"),
    ],
)  # fmt: skip
def test_rules_of_metrics(control, expected):
    assert refusal(MODEL + f"model_metrics {{ metric_control {{ {control} }} }}") == expected
