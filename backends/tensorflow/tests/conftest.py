"""Write small models, and serve them. Without TensorFlow, only the tests that need none are collected."""

from importlib.util import find_spec

import pytest
from backend_tensorflow import backend
from core_testing.one_model import one_model

WITHOUT = ("test_signatures.py", "test_settings.py", "test_without_tensorflow.py")
HAS_TENSORFLOW = find_spec("tensorflow") is not None


def pytest_ignore_collect(collection_path):
    """Leave out what needs TensorFlow, if it is not installed."""
    needs = collection_path.name.startswith("test_") and collection_path.name not in WITHOUT
    return True if needs and not HAS_TENSORFLOW else None


@pytest.fixture
def serve(tmp_path):
    """serve(fill, config=None, settings=None, **options): serve a model named m (core_testing.one_model)."""
    with one_model(backend, "tensorflow", tmp_path) as start:
        yield start
