"""Make small ONNX models, and serve them."""

from functools import partial

import numpy as np
import onnx
import pytest
from backend_onnx import backend
from core_testing.one_model import one_model
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8


def graph(nodes, inputs, outputs, initializers=None, *, opset=OPSET, ir_version=IR_VERSION):
    """Make a ModelProto. nodes: (operator, inputs, outputs, attributes); inputs: name → (type, shape)."""
    made = helper.make_graph(
        [
            helper.make_node(operator, takes, gives, **attributes)
            for operator, takes, gives, attributes in nodes
        ],
        "graph",
        [helper.make_tensor_value_info(name, *each) for name, each in inputs.items()],
        [helper.make_tensor_value_info(name, *each) for name, each in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (initializers or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(made, opset_imports=opsets, ir_version=ir_version)


def identity(kind=TensorProto.FLOAT, shape=("n", 3), **more):
    """y = x."""
    return graph(
        [("Identity", ["x"], ["y"], {})], {"x": (kind, shape)}, {"y": (kind, shape)}, **more
    )


@pytest.fixture(name="graph")
def graph_fixture():
    return graph


@pytest.fixture(name="identity")
def identity_fixture():
    return identity


@pytest.fixture
def serve(tmp_path):
    """serve(model, config="", settings=None, **options): serve a model named m.

    model   a ModelProto, the bytes of model.onnx, or a function that fills the version's folder
    Other arguments are those of core_testing.one_model.
    """
    with one_model(backend, "onnxruntime", tmp_path) as start:

        def fill(model, folder):
            if callable(model):
                model(folder)
            elif isinstance(model, bytes):
                (folder / "model.onnx").write_bytes(model)
            else:
                onnx.save(model, folder / "model.onnx")

        def start_model(model, config="", *arguments, **options):
            return start(partial(fill, model), config, *arguments, **options)

        yield start_model


@pytest.fixture
def rng():
    return np.random.default_rng(7)
