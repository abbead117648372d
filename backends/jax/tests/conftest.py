"""Export small functions, and serve them. Without JAX, nothing here is collected."""

from functools import partial
from importlib.util import find_spec

import pytest

HAS_JAX = find_spec("jax") is not None and find_spec("flatbuffers") is not None
collect_ignore_glob = [] if HAS_JAX else ["test_[!w]*.py"]

if HAS_JAX:
    from backend_jax import backend
    from backend_jax.conformance import save
    from core_testing.one_model import one_model


@pytest.fixture
def serve(tmp_path):
    """serve(function, config=None, **inputs): serve a model named m.

    function   that is exported, the content of a file, or a function `fill(folder)` if there are no inputs
    inputs     name → (datatype, shape)
    """
    with one_model(backend, "jax", tmp_path) as start:

        def fill(function, inputs, folder):
            if isinstance(function, bytes):
                (folder / "model.jax").write_bytes(function)
            elif inputs:
                save(folder, function, **inputs)
            else:
                function(folder)

        def start_model(function, config=None, **inputs):
            return start(partial(fill, function, inputs), config)

        yield start_model
