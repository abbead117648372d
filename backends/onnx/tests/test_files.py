"""Finding the model file, and errors for wrong files."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from core.errors import CoreError, Kind

X = np.ones((1, 3), np.float32)


def test_the_file_may_be_in_a_folder_of_its_name(serve, identity):
    def fill(folder):
        (folder / "model.onnx").mkdir()
        onnx.save(identity(), folder / "model.onnx" / "model.onnx")

    assert serve(fill)(x=X)["y"].tolist() == [[1, 1, 1]]


def test_external_weights_are_found_beside_the_file(serve, graph):
    model = serve(lambda folder: save_external(folder, graph))

    assert model(x=X)["y"].tolist() == [[2] * 3]


def test_missing_external_weights_are_reported(serve, graph):
    def fill(folder):
        save_external(folder, graph)
        (folder / "weights.bin").unlink()

    with pytest.raises(CoreError, match=r"model 'm': cannot load .*must lie beside it.*weights"):
        serve(fill)


def save_external(folder, graph):
    model = graph(
        [("Mul", ["x", "w"], ["y"], {})],
        {"x": (TensorProto.FLOAT, ["n", 3])},
        {"y": (TensorProto.FLOAT, ["n", 3])},
    )
    weights = numpy_helper.from_array(np.full(3, 2, np.float32), "w")
    model.graph.initializer.append(weights)
    onnx.save(
        model,
        folder / "model.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )


def test_the_file_may_have_another_name(serve, identity):
    model = serve(
        lambda folder: onnx.save(identity(), folder / "net.onnx"),
        'backend: "onnxruntime" default_model_filename: "net.onnx"',
    )

    assert model(x=X)["y"].tolist() == [[1, 1, 1]]


def test_an_error_for_a_missing_file_lists_the_files_that_are_there(serve, identity):
    with pytest.raises(CoreError, match=r"unable to find '.*1/model.onnx' for model 'm'") as caught:
        serve(lambda folder: (folder / "net.onnx").touch(), 'backend: "onnxruntime"')

    assert "net.onnx" in caught.value.message
    assert "default_model_filename" in caught.value.message


@pytest.mark.parametrize("content", [b"", b"garbage" * 100])
def test_an_error_for_a_broken_file_has_its_size(serve, content):
    with pytest.raises(CoreError, match="export or copy the file again") as caught:
        serve(content)

    assert "model 'm': cannot load" in caught.value.message
    assert f"{len(content)} bytes" in caught.value.message


def test_half_a_file_is_refused(serve, identity):
    with pytest.raises(CoreError, match="cannot load"):
        serve(identity().SerializeToString()[:-40])


def test_a_pointer_of_git_lfs_is_recognised(serve):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"

    with pytest.raises(CoreError, match="git lfs pull"):
        serve(pointer)


def test_an_error_for_a_newer_opset_has_both_versions(serve, identity):
    with pytest.raises(CoreError, match=r"uses opset 99 .*knows opsets up to \d+; install a newer"):
        serve(identity(opset=99))


def test_an_error_for_a_newer_format_has_both_versions(serve, identity):
    with pytest.raises(CoreError, match=r"IR version 99, onnxruntime .* knows up to \d+"):
        serve(identity(ir_version=99))


def test_an_operator_without_an_implementation_is_reported(serve, graph):
    model = graph(
        [("Softmax", ["x"], ["y"], {})],
        {"x": (TensorProto.BFLOAT16, ["n", 3])},
        {"y": (TensorProto.BFLOAT16, ["n", 3])},
    )

    with pytest.raises(CoreError, match=r"not for these datatypes.*implementation for"):
        serve(model)


def test_an_unknown_operator_is_reported(serve, graph):
    model = graph(
        [("NoSuchOperator", ["x"], ["y"], {})],
        {"x": (TensorProto.FLOAT, ["n", 3])},
        {"y": (TensorProto.FLOAT, ["n", 3])},
    )

    with pytest.raises(CoreError, match=r"op_library_filename.*NoSuchOperator") as caught:
        serve(model)

    assert caught.value.kind is Kind.INVALID
