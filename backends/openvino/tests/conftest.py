"""Make small OpenVINO models, and serve them."""

from functools import partial

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from backend_openvino import backend
from core_testing.one_model import one_model


def model_of(function, *, layout="", **inputs):
    """Make an openvino.Model. function(**nodes) returns {name: node}; inputs: name → (type, dims)."""
    parameters = {name: op.parameter(list(dims), kind) for name, (kind, dims) in inputs.items()}
    for name, node in parameters.items():
        node.output(0).set_names({name})
        if layout:
            node.layout = ov.Layout(layout)
    results = []
    for name, node in function(**parameters).items():
        result = op.result(node)
        result.output(0).set_names({name})
        if layout:
            result.layout = ov.Layout(layout)
        results.append(result)
    return ov.Model(results, list(parameters.values()), "small")


def doubled(kind=ov.Type.f32, dims=(-1, 3), **more):
    """y = x + x."""
    return model_of(lambda x: {"y": op.add(x, x)}, x=(kind, dims), **more)


def same(kind=ov.Type.f32, dims=(-1, 3), **more):
    """y = x, for every datatype. (A graph without an operator would have one tensor, and one name.)"""
    as_it_is = np.zeros(len(dims), np.int64)
    return model_of(lambda x: {"y": op.reshape(x, as_it_is, True)}, x=(kind, dims), **more)


@pytest.fixture(name="model_of")
def model_of_fixture():
    return model_of


@pytest.fixture(name="doubled")
def doubled_fixture():
    return doubled


@pytest.fixture(name="same")
def same_fixture():
    return same


@pytest.fixture
def serve(tmp_path):
    """serve(model, config="", settings=None, **options): serve a model named m.

    model   an openvino.Model, or a function that fills the version's folder
    Other arguments are those of core_testing.one_model.
    """
    with one_model(backend, "openvino", tmp_path) as start:

        def fill(model, folder):
            if isinstance(model, ov.Model):
                ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
            else:
                model(folder)

        def start_model(model, config="", *arguments, **options):
            return start(partial(fill, model), config, *arguments, **options)

        yield start_model


@pytest.fixture
def rng():
    return np.random.default_rng(7)
