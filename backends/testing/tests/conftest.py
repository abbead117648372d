"""The fixture `serve`: serve(backend, config) serves a model `example` until the end of the test."""

from contextlib import ExitStack

import pytest
from core_testing.served import Served


@pytest.fixture
def serve(tmp_path):
    with ExitStack() as running:

        def start(backend, config):
            folder = tmp_path / "models" / "example" / "1"
            folder.mkdir(parents=True)
            (folder.parent / "config.pbtxt").write_text(config)
            served = running.enter_context(Served(backend, tmp_path / "models"))
            served.load()
            return served

        yield start
