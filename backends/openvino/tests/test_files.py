"""Finding the model file, and errors for wrong files."""

import numpy as np
import onnx
import openvino as ov
import openvino.opset13 as op
import pytest
from onnx import TensorProto, helper

from core.errors import CoreError

X = np.ones((1, 3), np.float32)


def test_an_onnx_file_is_served(serve):
    def fill(folder):
        node = helper.make_node("Add", ["x", "x"], ["y"])
        tensors = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in ("x", "y")
        ]
        graph = helper.make_graph([node], "graph", tensors[:1], tensors[1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, folder / "model.onnx")

    model = serve(fill, 'backend: "openvino" default_model_filename: "model.onnx"')

    assert model(x=X)["y"].tolist() == [[2, 2, 2]]


def test_an_error_for_a_missing_file_lists_the_files_that_are_there(serve):
    with pytest.raises(CoreError, match=r"unable to find '.*1/model.xml' for model 'm'") as caught:
        serve(lambda folder: (folder / "net.xml").touch(), 'backend: "openvino"')

    assert "net.xml" in caught.value.message
    assert "default_model_filename" in caught.value.message


@pytest.mark.parametrize("content", [b"", b"garbage" * 100, b"<?xml version='1.0'?><net></net>"])
def test_a_broken_file_is_refused(serve, content):
    def fill(folder):
        (folder / "model.xml").write_bytes(content)
        (folder / "model.bin").write_bytes(b"")

    with pytest.raises(CoreError, match=r"model 'm': cannot load '.*model.xml': .*again"):
        serve(fill)


def test_missing_weights_are_reported(serve, model_of):
    def fill(folder):
        save_with_weights(folder, model_of)
        (folder / "model.bin").unlink()

    with pytest.raises(CoreError, match=r"weights 'model.bin' are not beside it"):
        serve(fill)


def test_half_of_the_weights_is_refused(serve, model_of):
    def fill(folder):
        save_with_weights(folder, model_of)
        weights = folder / "model.bin"
        weights.write_bytes(weights.read_bytes()[:1000])

    with pytest.raises(CoreError, match=r"model 'm': cannot load '.*model.xml'"):
        serve(fill)


def save_with_weights(folder, model_of):
    weights = np.random.default_rng(1).standard_normal((3, 500)).astype(np.float32)
    model = model_of(
        lambda x: {"y": op.matmul(x, op.constant(weights), False, False)}, x=(ov.Type.f32, (-1, 3))
    )
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)


def test_a_pointer_of_git_lfs_is_recognised(serve):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"

    with pytest.raises(CoreError, match="git lfs pull"):
        serve(lambda folder: (folder / "model.xml").write_bytes(pointer))


def test_importing_core_does_not_import_openvino():
    import subprocess
    import sys

    code = "import core, core.server, sys; sys.exit('openvino' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_folder_instead_of_a_file_is_refused(serve):
    with pytest.raises(CoreError, match=r"unable to find '.*model.xml'.* model.xml \(a folder\)"):
        serve(lambda folder: (folder / "model.xml").mkdir(), 'backend: "openvino"')
