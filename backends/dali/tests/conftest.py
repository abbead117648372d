"""Write small pipelines with and without DALI, and serve them.

Without DALI, only the tests that need none are collected.
"""

from importlib.util import find_spec

import pytest
from backend_dali import backend
from backend_dali.messages import Pipeline
from core_testing.one_model import one_model

WITHOUT = (
    "test_reading.py",
    "test_serializing.py",
    "test_settings.py",
    "test_splitting.py",
    "test_without_dali.py",
)
HAS_DALI = find_spec("nvidia") is not None and find_spec("nvidia.dali") is not None


def pytest_ignore_collect(collection_path):
    """Leave out what needs DALI, if it is not installed."""
    needs = collection_path.name.startswith("test_") and collection_path.name not in WITHOUT
    return True if needs and not HAS_DALI else None


def written(inputs, outputs, batch_size=8, device="cpu"):
    """Return a serialized pipeline. DALI would not run it: no operator makes the outputs.

    inputs    name → (DALI's number of the datatype or None, ndim or None)
    outputs   name → the same
    device    of one more operator
    """
    message = Pipeline(threads=1, batch_size=batch_size)
    for name, (dtype, ndim) in inputs.items():
        operator = message.operators.add(schema="ExternalSource", name=name)
        operator.arguments.add(name="device", strings=["cpu"])
        for argument, value in (("dtype", dtype), ("ndim", ndim)):
            if value is not None:
                operator.arguments.add(name=argument, ints=[value])
    operator = message.operators.add(schema="decoders__Image", name="decoder")
    operator.arguments.add(name="device", strings=[device])
    operator.arguments.add(name="_display_name", strings=["decoders.image"])
    for name, (dtype, ndim) in outputs.items():
        message.outputs.add(name=name, device="cpu", dtype=dtype, ndim=ndim)
    return message.SerializeToString()


@pytest.fixture
def small():
    """small(inputs, outputs, batch_size=8, device="cpu"): a serialized pipeline, see `written`."""
    return written


@pytest.fixture
def version(tmp_path):
    """A version's folder: encoded UINT8[-1] → pixels FP32[-1, -1, -1]."""
    content = written({"encoded": (0, 1)}, {"pixels": (9, 3)})
    (tmp_path / "model.dali").write_bytes(content)
    return tmp_path


@pytest.fixture
def serve(tmp_path):
    """serve(fill, config=None, settings=None, **options): serve a model named m (core_testing.one_model)."""
    with one_model(backend, "dali", tmp_path) as start:
        yield start
