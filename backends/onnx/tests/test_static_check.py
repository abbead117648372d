"""What is read of a file without loading it is what a session says of it."""

from copy import deepcopy
from pathlib import Path

import onnxruntime as ort
import pytest
from backend_onnx import backend
from backend_onnx.graph import graph_of
from backend_onnx.unloaded.facts import facts_of
from backend_onnx.unloaded.runtime import newest_ir_version, newest_opset, operators
from backend_onnx.unloaded.static_check import check_version
from backend_onnx.unloaded.wire import Damaged, fields
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from core.config import ModelConfig
from core.errors import CoreError

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "models").glob("*/1/model.onnx"))
TYPES = [
    TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.INT64,
    TensorProto.UINT8, TensorProto.BOOL, TensorProto.STRING,
]  # fmt: skip
few = settings(max_examples=40)


def saved(path, inputs, outputs, nodes, **graph):
    made = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs],
        **graph,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path.write_bytes(model.SerializeToString())
    return path


def session_graph(path):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return graph_of(ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda each: each.parts[-3])
def test_the_examples_have_the_graph_of_their_session(path):
    assert facts_of(path).graph == session_graph(path)


sizes = st.integers(1, 2**31 - 1) | st.sampled_from(["n", "rows"])


@few
@given(
    tensors=st.lists(
        st.tuples(st.sampled_from(TYPES), st.lists(sizes, max_size=4)), min_size=1, max_size=4
    )
)
def test_any_inputs_and_outputs_are_those_of_the_session(tensors, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "model.onnx"
    inputs = [(f"x{i}", kind, shape) for i, (kind, shape) in enumerate(tensors)]
    outputs = [(f"y{i}", kind, shape) for i, (kind, shape) in enumerate(tensors)]
    nodes = [helper.make_node("Identity", [f"x{i}"], [f"y{i}"]) for i in range(len(tensors))]
    saved(path, inputs, outputs, nodes)

    assert facts_of(path).graph == session_graph(path)


def test_an_initializer_that_is_an_input_is_optional(tmp_path):
    value = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    tensors = [("x", TensorProto.FLOAT, ["n"]), ("w", TensorProto.FLOAT, [1])]
    node = helper.make_node("Add", ["x", "w"], ["y"])
    path = saved(
        tmp_path / "m", tensors, [("y", TensorProto.FLOAT, ["n"])], [node], initializer=[value]
    )

    assert facts_of(path).graph == session_graph(path)


def test_an_output_without_a_shape_is_left_to_a_session(tmp_path):
    node = helper.make_node("Relu", ["x"], ["y"])
    tensors = [("x", TensorProto.FLOAT, ["n", 4])]
    saved(tmp_path / "model.onnx", tensors, [("y", TensorProto.FLOAT, None)], [node])

    assert check_version(ModelConfig(name="m"), tmp_path, backend) is False
    config = ModelConfig(name="m", max_batch_size=4)
    config.output.add(name="y", data_type=11, dims=[4])
    assert check_version(config, tmp_path, backend) is True


@pytest.mark.parametrize(
    ("sizes", "dims", "fits"),
    [
        (["other", 4], [-1, 4], "certain"),
        (["other", 4], [2, 4], "uncertain"),  # a session infers 2
        (["other", 4], [2, 5], "wrong"),
        (["other", 4], [2], "wrong"),
        (["n", 4], [2, 4], "uncertain"),  # a session may infer it, as after a Reshape
        (["n", 4], [2, 5], "wrong"),
    ],
)
def test_an_output_with_a_name_for_a_size_may_have_a_number(tmp_path, sizes, dims, fits):
    node = helper.make_node("Relu", ["x"], ["y"])
    tensors = [("x", TensorProto.FLOAT, ["n" if "n" in sizes else 2, 4])]
    saved(tmp_path / "model.onnx", tensors, [("y", TensorProto.FLOAT, sizes)], [node])
    config = ModelConfig(name="m")
    config.input.add(name="x", data_type=11, dims=[-1 if "n" in sizes else 2, 4])
    config.output.add(name="y", data_type=11, dims=dims)

    if fits != "wrong":
        assert check_version(config, tmp_path, backend) is (fits == "certain")
    else:
        with pytest.raises(CoreError, match=r"'y'"):
            check_version(config, tmp_path, backend)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda each: each.parts[-3])
@pytest.mark.parametrize("rows", [0, 8])
def test_the_check_completes_a_configuration_like_a_load(path, rows):
    loaded = ModelConfig(name="m", max_batch_size=rows)
    checked = deepcopy(loaded)

    backend.complete(loaded, path.parent, backend)

    assert check_version(checked, path.parent, backend) is True
    assert checked == loaded


def test_the_operators_of_inner_graphs_and_functions_count(tmp_path):
    branch = helper.make_graph(
        [helper.make_node("Nowhere", ["x"], ["b"])],
        "branch",
        [],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, [1])],
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    tensors = [("x", TensorProto.FLOAT, [1]), ("c", TensorProto.BOOL, [])]
    path = saved(tmp_path / "model.onnx", tensors, [("y", TensorProto.FLOAT, [1])], [node])

    assert ("", "Nowhere") in facts_of(path).operators
    with pytest.raises(CoreError, match="the operator Nowhere, which onnxruntime"):
        check_version(ModelConfig(name="m"), tmp_path, backend)


def test_libraries_of_operators_are_not_loaded(tmp_path):
    node = helper.make_node("Mine", ["x"], ["y"], domain="my.domain")
    tensors = [("x", TensorProto.FLOAT, ["n"])]
    saved(tmp_path / "model.onnx", tensors, [("y", TensorProto.FLOAT, ["n"])], [node])
    (tmp_path / "mine.so").write_bytes(b"no library")
    config = ModelConfig(name="m")
    config.model_operations.op_library_filename.append("mine.so")

    assert check_version(config, tmp_path, backend) is True
    config.model_operations.op_library_filename[0] = "none.so"
    with pytest.raises(CoreError, match="there is no such file"):
        check_version(config, tmp_path, backend)


def test_the_installed_runtime_says_what_it_knows():
    assert newest_ir_version() >= 8
    assert newest_opset("") >= 17
    assert newest_opset("ai.onnx.ml") >= 2
    assert newest_opset("no.domain") is None
    assert operators() is None or operators()["", "Relu"] == 1


@few
@given(st.binary(max_size=60))
def test_any_bytes_are_fields_or_damaged(content):
    try:
        found = list(fields(memoryview(content)))
    except Damaged:
        return

    assert sum(len(value) for _, value in found if not isinstance(value, int)) <= len(content)
