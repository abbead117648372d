"""A configuration that the file contradicts is refused, and the error has the values of both."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from core import __main__ as command
from core.errors import CoreError

WHOLE = """
max_batch_size: {size}
input [ {{ name: "{x}" data_type: {type} dims: [ {dims} ] {more} }} ]
output [ {{ name: "{y}" data_type: TYPE_FP32 dims: [ {out} ] }} ]
"""


def config(**changes):
    fitting = {
        "size": 8,
        "x": "x",
        "y": "y",
        "type": "TYPE_FP32",
        "dims": "3",
        "out": "3",
        "more": "",
    }
    return WHOLE.format(**{**fitting, **changes})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"x": "z"}, r"model provides 1; config.pbtxt lacks x, and has z, which"),
        ({"y": "z"}, r"unexpected inference output 'z', allowed outputs are: y"),
        (
            {"type": "TYPE_INT32"},
            r"expects datatype TYPE_INT32 for input 'x', model provides TYPE_FP32",
        ),
        ({"dims": "4"}, r"tensor 'x': the model expects 2 dimensions \(shape \[-1,3\]\).*\[-1,4\]"),
        ({"dims": "-1"}, r"tensor 'x': .*making complete shape \[-1,-1\]"),
        ({"dims": "3, 1"}, r"tensor 'x': .*specifies 3 dimensions"),
        ({"out": "5"}, r"tensor 'y': .*\[-1,5\]"),
        ({"size": 0}, r"tensor 'x': .*specifies 1 dimensions \(shape \[3\]\)"),
        ({"more": "optional: true"}, r"optional input 'x' is not supported.*max_batch_size: 0"),
        ({"more": "allow_ragged_batch: true"}, r"ragged input 'x', model provides \[-1,3\]"),
    ],
)
def test_a_mismatch_is_refused_by_name(serve, identity, changes, text):
    with pytest.raises(CoreError, match=text) as caught:
        serve(identity(), config(**changes))

    assert "'m'" in caught.value.message


def test_batching_of_a_model_with_a_fixed_first_dimension(serve, identity):
    with pytest.raises(CoreError, match=r"tensor 'x': for the model to support batching.*\[2,3\]"):
        serve(identity(shape=(2, 3)), config())


def test_a_missing_input_is_named(serve, graph):
    two = graph(
        [("Add", ["x", "bias"], ["y"], {})],
        {"x": (TensorProto.FLOAT, ["n", 3]), "bias": (TensorProto.FLOAT, ["n", 3])},
        {"y": (TensorProto.FLOAT, ["n", 3])},
    )

    with pytest.raises(
        CoreError, match=r"expects 1 inputs, model provides 2; config.pbtxt lacks bias"
    ):
        serve(two, config())


def test_an_error_for_an_unknown_input_lists_the_inputs(serve, identity):
    text = """
        input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] },
                { name: "z" data_type: TYPE_FP32 dims: [ 1 ] } ]
        output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, 3 ] } ]
    """
    with pytest.raises(CoreError, match=r"unexpected inference input 'z', allowed inputs are: x"):
        serve(identity(), text)


def test_outputs_may_be_left_out(serve, graph):
    two = graph(
        [("Neg", ["x"], ["y"], {}), ("Abs", ["x"], ["z"], {})],
        {"x": (TensorProto.FLOAT, ["n", 3])},
        {"y": (TensorProto.FLOAT, ["n", 3]), "z": (TensorProto.FLOAT, ["n", 3])},
    )

    found = serve(two, config())(x=np.ones((1, 3), np.float32))

    assert {name: array.tolist() for name, array in found.items()} == {"y": [[-1, -1, -1]]}


@pytest.fixture
def classifier():
    """A classifier like those of skl2onnx: class probabilities are a list of maps."""
    made = helper.make_graph(
        [
            helper.make_node("Identity", ["x"], ["y"]),
            helper.make_node(
                "ZipMap", ["x"], ["chances"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2]
            ),
        ],
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3]),
            helper.make_value_info(
                "chances",
                helper.make_sequence_type_proto(
                    helper.make_map_type_proto(
                        TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, None)
                    )
                ),
            ),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=8)
    return lambda folder: onnx.save(model, folder / "model.onnx")


def test_an_output_that_is_no_tensor_is_refused_with_advice(serve, classifier):
    with pytest.raises(CoreError, match=r"'chances' is of type seq\(map.*zipmap"):
        serve(classifier)


def test_an_output_that_is_no_tensor_may_be_left_out(serve, classifier):
    model = serve(classifier, config())

    assert model(x=np.ones((1, 3), np.float32))["y"].tolist() == [[1, 1, 1]]


def test_a_type_that_the_protocol_lacks_is_refused(serve, identity):
    small = identity(TensorProto.FLOAT8E4M3FN, opset=19, ir_version=9)

    with pytest.raises(CoreError, match=r"tensor\(float8e4m3fn\).*end the graph with a Cast"):
        serve(small)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"dims": "7"}, "the model expects 2 dimensions (shape [-1,3])"),
        ({"type": "TYPE_INT8"}, "expects datatype TYPE_INT8 for input 'x'"),
        ({"x": "xx"}, "config.pbtxt lacks x, and has xx, which the model does not have"),
    ],
)
def test_the_command_config_refuses_the_same_as_a_load(tmp_path, capsys, identity, changes, text):
    version = tmp_path / "m" / "1"
    version.mkdir(parents=True)
    onnx.save(identity(), version / "model.onnx")
    (tmp_path / "m" / "config.pbtxt").write_text(config(**changes))

    assert command.main(["config", str(tmp_path / "m")]) == 1

    assert text in capsys.readouterr().err
