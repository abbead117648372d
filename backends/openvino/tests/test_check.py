"""A configuration that the file contradicts is refused, and the error has the values of both."""

import openvino as ov
import openvino.opset13 as op
import pytest

from core.errors import CoreError

INPUT = 'input { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] }'
OUTPUT = 'output { name: "y" data_type: TYPE_FP32 dims: [ -1, 3 ] }'


def refusal(serve, model, config):
    with pytest.raises(CoreError) as caught:
        serve(model, f'backend: "openvino" {config}')
    return caught.value.message


def test_an_unknown_input(serve, doubled):
    text = refusal(serve, doubled(), INPUT.replace('"x"', '"z"') + OUTPUT)

    assert "unexpected inference input 'z', allowed inputs are: x" in text


def test_an_unknown_output(serve, doubled):
    text = refusal(serve, doubled(), INPUT + OUTPUT.replace('"y"', '"z"'))

    assert "unexpected inference output 'z', allowed outputs are: y" in text


def test_a_missing_input(serve, model_of):
    both = model_of(
        lambda x, w: {"y": op.add(x, w)}, x=(ov.Type.f32, (-1, 3)), w=(ov.Type.f32, (-1, 3))
    )

    text = refusal(serve, both, INPUT + OUTPUT)

    assert "configuration expects 1 inputs, model provides 2; config.pbtxt lacks w" in text


def test_other_dims(serve, doubled):
    text = refusal(serve, doubled(), INPUT.replace("3 ]", "4 ]") + OUTPUT)

    assert "tensor 'x': the model expects 2 dimensions (shape [-1,3]) but the model" in text
    assert "specifies 2 dimensions (shape [-1,4])" in text


def test_other_dims_with_a_batch(serve, doubled):
    text = refusal(serve, doubled(), "max_batch_size: 4 " + INPUT + OUTPUT)

    assert "making complete shape [-1,-1,3]" in text


def test_text_is_no_number(serve, doubled):
    text = refusal(serve, doubled(), INPUT.replace("FP32", "STRING") + OUTPUT)

    assert "configuration expects datatype TYPE_STRING for 'x', model provides TYPE_FP32" in text


def test_a_type_that_the_protocol_does_not_have(serve, doubled):
    text = refusal(serve, doubled(ov.Type.i4, (-1, 2)), "")

    assert "is of type i4, which cannot be sent to clients" in text


def test_ragged_tensors(serve, doubled):
    text = refusal(
        serve,
        doubled(),
        "max_batch_size: 4 "
        + (INPUT + OUTPUT).replace("-1, ", "")
        + "batch_input { kind: BATCH_ELEMENT_COUNT data_type: TYPE_FP32"
        + ' target_name: "c" source_input: "x" }',
    )

    assert "batch_input and batch_output are not for OpenVINO models" in text


@pytest.mark.parametrize("word", ["optional", "allow_ragged_batch"])
def test_a_setting_that_openvino_does_not_support_is_refused_by_name(serve, doubled, word):
    with pytest.raises(CoreError, match=f"model 'm': .*{word}.*input 'x'"):
        serve(
            doubled(),
            f"""
            backend: "openvino" max_batch_size: 4
            input {{ name: "x" data_type: TYPE_FP32 dims: 3 {word}: true }}
            output {{ name: "y" data_type: TYPE_FP32 dims: 3 }}
            """,
        )
