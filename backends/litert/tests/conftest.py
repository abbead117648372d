"""Write small LiteRT models, and serve them."""

from contextlib import ExitStack

import pytest
from backend_litert import backend
from backend_litert.small_model import GraphWriter
from core_testing.served import AskedModel, Served


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
    """serve(model, config="", settings=None, **options): serve a model named m.

    model      a GraphWriter, the content of a file, or a function that fills the version's folder
    config     text of config.pbtxt; without it, only the backend is named
    settings   of --backend-config
    options    of the server
    """
    with ExitStack() as running:

        def start(model, config='backend: "litert"', settings=None, **options):
            folder = tmp_path / "models" / "m" / "1"
            folder.mkdir(parents=True)
            if isinstance(model, GraphWriter):
                model = model.bytes()
            if isinstance(model, bytes):
                (folder / "model.tflite").write_bytes(model)
            else:
                model(folder)
            (folder.parent / "config.pbtxt").write_text(config)
            served = running.enter_context(
                Served(
                    backend,
                    tmp_path / "models",
                    backend_config={"litert": settings or {}},
                    **options,
                )
            )
            served.load("m")
            return AskedModel(served, "m")

        yield start
