"""Write small models, and serve them. Without TensorFlow, only the tests that need none are collected."""

from contextlib import ExitStack
from importlib.util import find_spec

import pytest
from backend_tensorflow import backend
from core_testing.served import AskedModel, Served

WITHOUT = ("test_signatures.py", "test_settings.py", "test_without_tensorflow.py")
HAS_TENSORFLOW = find_spec("tensorflow") is not None


def pytest_ignore_collect(collection_path):
    """Leave out what needs TensorFlow, if it is not installed."""
    needs = collection_path.name.startswith("test_") and collection_path.name not in WITHOUT
    return True if needs and not HAS_TENSORFLOW else None


@pytest.fixture
def serve(tmp_path):
    """serve(fill, config="…", settings=None): serve a model named m.

    fill       function that fills the version's folder
    config     text of config.pbtxt; without it, only the backend is named
    settings   of --backend-config
    """
    with ExitStack() as running:

        def start(fill, config='backend: "tensorflow"', settings=None, **options):
            folder = tmp_path / "models" / "m" / "1"
            folder.mkdir(parents=True)
            fill(folder)
            (folder.parent / "config.pbtxt").write_text(config)
            served = running.enter_context(
                Served(
                    backend,
                    tmp_path / "models",
                    backend_config={"tensorflow": settings or {}},
                    **options,
                )
            )
            served.load("m")
            return AskedModel(served, "m")

        yield start
