"""Modules of several makers give the outputs of TVM itself, without a configuration."""

from importlib.util import find_spec

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax.frontend import nn

TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="no package torch")
needs_onnx = pytest.mark.skipif(find_spec("onnx") is None, reason="no package onnx")


def numbers(*shape):
    return np.random.default_rng(3).random(shape, np.float32)


def compiled(module, mode="bytecode"):
    """Return a function that fills the folder of a version."""
    built = relax.build(module, "llvm", exec_mode=mode)
    return lambda folder: built.export_library(str(folder / "model.so"))


def bare(module, *arrays, function="main"):
    """Return the results of TVM's virtual machine."""
    machine = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    results = machine[function](*map(tvm.runtime.tensor, arrays))
    return [each.numpy() for each in (results if hasattr(results, "__len__") else [results])]


def onnx_module(keep=False):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = {"conv": numbers(4, 3, 3, 3), "w": numbers(4, 5), "b": numbers(5)}
    nodes = [
        helper.make_node("Conv", ["image", "conv"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w", "b"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["rows", 3, 9, 8])],
        [
            helper.make_tensor_value_info(each, TensorProto.FLOAT, ["rows", 5])
            for each in ("logits", "scores")
        ],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    from tvm.relax.frontend.onnx import from_onnx

    return model, from_onnx(model, keep_params_in_input=keep)


@needs_onnx
@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_a_model_of_onnx(serve, mode):
    model, module = onnx_module()
    served = serve(compiled(module, mode))
    image = numbers(2, 3, 9, 8)

    answer = served(image=image)

    assert served.config.max_batch_size == 4
    for found, wanted in zip(answer.values(), bare(module, image), strict=True):
        np.testing.assert_allclose(found, wanted, **TOLERANCE)
    if find_spec("onnxruntime"):
        import onnxruntime

        session = onnxruntime.InferenceSession(model.SerializeToString())
        for found, wanted in zip(answer.values(), session.run(None, {"image": image}), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@needs_onnx
def test_a_model_of_onnx_with_weights_beside_it(serve):
    _, module = onnx_module(keep=True)
    module, weights = relax.frontend.detach_params(module)
    names = [each.name for each in module["main"].params][1:]

    def fill(folder):
        compiled(module)(folder)
        found = dict(zip(names, weights["main"], strict=True))
        tvm.runtime.save_param_dict_to_file(found, str(folder / "model.params"))

    served = serve(fill)
    image = numbers(3, 3, 9, 8)

    answer = served(image=image)

    assert [io.name for io in served.config.input] == ["image"]
    wanted = bare(module, image, *(each.numpy() for each in weights["main"]))
    for found, array in zip(answer.values(), wanted, strict=True):
        np.testing.assert_allclose(found, array, **TOLERANCE)


@needs_torch
def test_a_program_of_pytorch(serve):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)

        def forward(self, x, ids):
            return torch.softmax(self.last(torch.tanh(self.first(x))), -1), ids * 2

    net = Net().eval()
    given = torch.zeros(2, 6), torch.zeros(2, 1, dtype=torch.int64)
    rows = torch.export.Dim("rows")
    program = torch.export.export(net, given, dynamic_shapes=({0: rows}, {0: rows}))
    module = from_exported_program(program)
    served = serve(compiled(module))
    x, ids = numbers(3, 6), np.arange(3).reshape(3, 1)

    answer = list(served(x=x, ids=ids).values())

    with torch.no_grad():
        wanted = net(torch.from_numpy(x), torch.from_numpy(ids))
    assert served.config.max_batch_size == 4
    np.testing.assert_allclose(answer[0], wanted[0].numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(answer[1], wanted[1].numpy())
    for found, array in zip(answer, bare(module, x, ids), strict=True):
        np.testing.assert_allclose(found, array, **TOLERANCE)


class Net(nn.Module):
    """A network of TVM's own layers."""

    def __init__(self):
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(nn.op.relu(self.first(x)))

    def double(self, x):
        return nn.op.add(x, x)


def test_a_network_of_tvm(serve):
    spec = {"x": nn.spec.Tensor(["n", 6], "float32")}
    module, weights = Net().export_tvm({"forward": spec, "double": spec})
    arrays = {name: numbers(*each.shape) for name, each in weights}

    def fill(folder):
        compiled(module)(folder)
        found = {name: tvm.runtime.tensor(array) for name, array in arrays.items()}
        tvm.runtime.save_param_dict_to_file(found, str(folder / "model.params"))

    served = serve(fill, PICK)
    x = numbers(2, 6)

    answer = served(x=x)["scores"]

    (wanted,) = bare(module, x, *arrays.values(), function="forward")
    np.testing.assert_allclose(answer, wanted, **TOLERANCE)


PICK = """backend: "tvm"
parameters { key: "function" value { string_value: "forward" } }
parameters { key: "outputs" value { string_value: "scores" } }
"""
