"""Rules of inputs and outputs. Texts are Triton's up to the colon; the rest names the field."""

# ruff: noqa: E501 (a searchable text stays on one line)

import pytest

INPUT = 'input { name: "x" data_type: TYPE_FP32 dims: -1 } '
OUTPUT = 'output { name: "y" data_type: TYPE_FP32 dims: -1 } '
MODEL = 'backend: "python" ' + INPUT + OUTPUT
BATCHING = MODEL + "max_batch_size: 4 "
PLAN = 'platform: "tensorrt_plan" '
SIZE = "must be integer >= 1, or -1 to indicate a variable-size dimension for m: "


@pytest.mark.parametrize(
    ("tensor", "expected", "place"),
    [
        ("data_type: TYPE_FP32 dims: 1", "must specify 'name' for m: ", ""),
        ('name: "x" dims: 1', "'x' must specify 'data_type' for m: ", ".data_type is TYPE_INVALID"),
        ('name: "x" data_type: 77 dims: 1', "'x' must specify 'data_type' for m: ", ".data_type is 77"),
        ('name: "x" data_type: TYPE_FP32', "'x' must specify 'dims' for m: ", ""),
        ('name: "x" data_type: TYPE_FP32 dims: 0', "'x' dimension " + SIZE, ".dims[0] is 0"),
        ('name: "x" data_type: TYPE_FP32 dims: [-1, -2]', "'x' dimension " + SIZE, ".dims[1] is -2"),
        ('name: "x" data_type: TYPE_FP32 dims: 1 reshape { }',
         "'x' cannot have empty reshape for non-batching model as scalar tensors are not supported for m: ", ".reshape"),
        ('name: "x" data_type: TYPE_FP32 dims: 1 reshape { shape: [1, 0] }',
         "'x' reshape dimensions " + SIZE, ".reshape.shape[1] is 0"),
        ('name: "x" data_type: TYPE_FP32 dims: 1 reshape { shape: -2 }', "'x' reshape dimensions " + SIZE, ".reshape.shape[0] is -2"),
    ],
)  # fmt: skip
def test_a_tensor_is_refused(refusal, tensor, expected, place):
    for kind in ("input", "output"):
        found = refusal(f'backend: "python" {kind} {{ {tensor} }}')

        assert found == f"model {kind} {expected}{kind}[0]{place}"


@pytest.mark.parametrize(
    ("dims", "shape", "what"),
    [
        ([4], [2, 3], "size"),
        ([-1], [2, 3], "size"),
        ([6], [-1], "size"),
        ([2, -1, 3], [3, -1, 2], "size"),
        ([2], [], "size"),
        ([-1], [], "size"),
        ([-1], [-1, -1], "number of variable-size dimensions"),
        ([-1, -1], [-1], "number of variable-size dimensions"),
    ],
)
def test_a_reshape_that_moves_elements_is_refused(refusal, dims, shape, what):
    text = (
        BATCHING
        + f'input {{ name: "r" data_type: TYPE_FP32 dims: {dims} reshape {{ shape: {shape} }} }}'
    )

    assert refusal(text) == (
        f"model input 'r' has different {what} for dims and reshape for m: "
        f"input[1].dims is {dims}, input[1].reshape.shape is {shape}"
    )


@pytest.mark.parametrize(
    ("dims", "shape"),
    [
        ([1], []),
        ([1, 1], []),
        ([2, -1, 6], [2, 1, -1, 2, 3]),
        ([2, 4, -1, 6], [8, -1, 1, 6]),
        ([4], [2, 2]),
    ],
)
def test_a_reshape_that_keeps_the_elements_in_place_is_accepted(settled, dims, shape):
    text = (
        BATCHING
        + f'input {{ name: "r" data_type: TYPE_FP32 dims: {dims} reshape {{ shape: {shape} }} }}'
    )

    assert settled(text)["input"][1]["reshape"] == {"shape": shape}


FORMATS = "FORMAT_NONE, FORMAT_NHWC, FORMAT_NCHW"
TENSORRT = "for the TensorRT platform for m: "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('input { name: "i" data_type: TYPE_FP32 dims: 1 format: FORMAT_NHWC }',
         "model input NHWC/NCHW require 3 dims for m: input[1] ('i').dims is [1]"),
        ('max_batch_size: 4 input { name: "i" data_type: TYPE_FP32 dims: [3, 4] format: FORMAT_NCHW }',
         "model input NHWC/NCHW require 3 dims for m: input[1] ('i').dims is [3, 4]"),
        ('input { name: "i" data_type: TYPE_FP32 dims: [1, 2, 3] format: 9 }',
         f"model input 'i' has the unknown format 9 for m: input[1].format; there are {FORMATS}"),
        ('input { name: "i" data_type: TYPE_FP32 dims: 1 is_shape_tensor: true }',
         "shape tensors are only supported for TensorRT platform for m: input[1] ('i').is_shape_tensor"),
        ('output { name: "o" data_type: TYPE_FP32 dims: 1 is_shape_tensor: true }',
         "shape tensors are only supported for TensorRT platform for m: output[1] ('o').is_shape_tensor"),
        ('input { name: "i" data_type: TYPE_FP32 dims: 1 is_non_linear_format_io: true }',
         "Non-linear IO format is only supported " + TENSORRT + "input[1] ('i').is_non_linear_format_io"),
        ('output { name: "o" data_type: TYPE_FP32 dims: 1 is_non_linear_format_io: true }',
         "Non-linear IO format is only supported " + TENSORRT + "output[1] ('o').is_non_linear_format_io"),
        (INPUT, "model input 'x' is specified more than once for m: input[1], and input[0]"),
        (OUTPUT, "model output 'y' is specified more than once for m: output[1], and output[0]"),
    ],
)  # fmt: skip
def test_a_further_tensor_is_refused(refusal, text, expected):
    assert refusal(MODEL + text) == expected


@pytest.mark.parametrize("kind", ["input", "output"])
def test_a_format_that_is_not_linear_has_three_dimensions(refusal, kind):
    text = (
        PLAN + f'{kind} {{ name: "t" data_type: TYPE_FP32 dims: 1 is_non_linear_format_io: true }}'
    )

    assert refusal(text, (0,)) == (
        f"Non-linear IO format {kind} requires 3 dims for m: {kind}[0] ('t').dims is [1]"
    )


SHOWN = {
    "name": "i",
    "data_type": "TYPE_FP32",
    "format": "FORMAT_NONE",
    "dims": [4],
    "is_shape_tensor": False,
    "allow_ragged_batch": False,
    "optional": False,
    "is_non_linear_format_io": False,
}


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("dims: 4", {}),
        ("dims: 9223372036854775807", {"dims": [2**63 - 1]}),
        ("dims: [3, 4, 5] format: FORMAT_NCHW", {"dims": [3, 4, 5], "format": "FORMAT_NCHW"}),
        ("dims: -1 allow_ragged_batch: true", {"dims": [-1], "allow_ragged_batch": True}),
        ("dims: 4 optional: true", {"optional": True}),
    ],
)
def test_an_input_is_accepted(settled, text, changes):
    text = f'backend: "python" input {{ name: "i" data_type: TYPE_FP32 {text} }}'

    assert settled(text)["input"] == [SHOWN | changes]


@pytest.mark.parametrize("flag", ["is_shape_tensor", "is_non_linear_format_io"])
def test_fields_of_tensorrt_are_accepted_for_its_platform(settled, flag):
    text = PLAN + f'input {{ name: "i" data_type: TYPE_FP32 dims: [1, 2, 3] {flag}: true }}'

    assert settled(text, (0,))["input"][0][flag]


def test_an_input_and_an_output_may_share_a_name(settled):
    text = MODEL + 'output { name: "x" data_type: TYPE_FP32 dims: 4 }'

    assert [io["name"] for io in settled(text)["output"]] == ["y", "x"]


KINDS = ("BATCH_ELEMENT_COUNT, BATCH_ACCUMULATED_ELEMENT_COUNT, BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO, "
         "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE, BATCH_ITEM_SHAPE, BATCH_ITEM_SHAPE_FLATTEN")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('batch_input { target_name: "t" data_type: TYPE_FP32 }',
         "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 0 for m: batch_input[0].source_input"),
        ('batch_input { kind: BATCH_ITEM_SHAPE target_name: "t" data_type: TYPE_FP32 source_input: ["x", "x"] }',
         "batch input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 2 for m: batch_input[0].source_input"),
        ('batch_input { kind: 9 target_name: "t" data_type: TYPE_FP32 source_input: "x" }',
         f"unknown batch input kind '9' for m: batch_input[0].kind; there are {KINDS}"),
        ('batch_input { target_name: "t" data_type: TYPE_FP64 source_input: "x" }',
         "batch input data type must be TYPE_INT32 or TYPE_FP32 for m: batch_input[0].data_type"),
        ('batch_input { target_name: "t" data_type: TYPE_FP32 source_input: "q" }',
         "unknown source input name 'q' for m: batch_input[0].source_input; inputs are x"),
        ('batch_output { target_name: "y" }',
         "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0 for m: batch_output[0].source_input"),
        ('batch_output { kind: 9 target_name: "y" source_input: "x" }',
         "unknown batch output kind '9' for m: batch_output[0].kind; there are BATCH_SCATTER_WITH_INPUT_SHAPE"),
        ('batch_output { target_name: "y" source_input: "q" }',
         "unknown source input name 'q' for m: batch_output[0].source_input; inputs are x"),
        ('batch_output { target_name: ["y", "q"] source_input: "x" }',
         "unknown target output name 'q' for m: batch_output[0].target_name[1]; outputs are y"),
        ('batch_output { target_name: ["y", "y"] source_input: "x" }',
         "target output name 'y' can only be specified once for m: batch_output[0].target_name[1]"),
    ],
)  # fmt: skip
def test_a_tensor_of_a_batch_is_refused(refusal, text, expected):
    assert refusal(MODEL + text) == expected


@pytest.mark.parametrize("kind", KINDS.split(", "))
def test_every_kind_of_tensor_of_a_batch_is_accepted(settled, kind):
    text = (
        f'batch_input {{ kind: {kind} target_name: "t" data_type: TYPE_INT32 source_input: "x" }}'
    )

    assert settled(MODEL + text)["batch_input"] == [
        {"kind": kind, "target_name": ["t"], "data_type": "TYPE_INT32", "source_input": ["x"]}
    ]
