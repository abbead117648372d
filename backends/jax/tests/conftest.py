"""Export small functions, and serve them. Without JAX, nothing here is collected."""

from contextlib import ExitStack
from importlib.util import find_spec

import pytest

HAS_JAX = find_spec("jax") is not None and find_spec("flatbuffers") is not None
collect_ignore_glob = [] if HAS_JAX else ["test_[!w]*.py"]

if HAS_JAX:
    from backend_jax import backend
    from backend_jax.conformance import save
    from core_testing.served import AskedModel, Served


@pytest.fixture
def serve(tmp_path):
    """serve(function, config="…", **inputs): serve a model named m.

    function   that is exported, the content of a file, or a function `fill(folder)` if there are no inputs
    inputs     name → (datatype, shape)
    """
    with ExitStack() as running:

        def start(function, config='backend: "jax"', **inputs):
            folder = tmp_path / "models" / "m" / "1"
            folder.mkdir(parents=True)
            if isinstance(function, bytes):
                (folder / "model.jax").write_bytes(function)
            elif inputs:
                save(folder, function, **inputs)
            else:
                function(folder)
            (folder.parent / "config.pbtxt").write_text(config)
            served = running.enter_context(Served(backend, tmp_path / "models"))
            served.load("m")
            return AskedModel(served, "m")

        yield start
