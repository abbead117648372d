"""Write small LiteRT models, and serve them."""

from functools import partial

import pytest
from backend_litert import backend
from backend_litert.small_model import GraphWriter
from core_testing.one_model import one_model


def same(dtype="float32", dims=(-1, 3), **more):
    """y = x, for every datatype."""
    graph = GraphWriter()
    graph.output(graph.reshape(graph.input("x", dtype, dims, **more), dims, "y"))
    return graph


def doubled(dtype="float32", dims=(-1, 3), **more):
    """y = x + x."""
    graph = GraphWriter()
    x = graph.input("x", dtype, dims, **more)
    graph.output(graph.add(x, x, "y"))
    return graph


@pytest.fixture(name="same")
def same_fixture():
    return same


@pytest.fixture(name="doubled")
def doubled_fixture():
    return doubled


@pytest.fixture
def serve(tmp_path):
    """serve(model, config=None, settings=None, **options): serve a model named m.

    model   a GraphWriter, the content of a file, or a function that fills the version's folder
    Other arguments are those of core_testing.one_model.
    """
    with one_model(backend, "litert", tmp_path) as start:

        def fill(model, folder):
            if isinstance(model, GraphWriter):
                model = model.bytes()
            if isinstance(model, bytes):
                (folder / "model.tflite").write_bytes(model)
            else:
                model(folder)

        def start_model(model, *arguments, **options):
            return start(partial(fill, model), *arguments, **options)

        yield start_model
