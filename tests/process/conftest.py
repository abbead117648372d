"""Real server processes, started as a user starts them."""

import pytest
from conformance.launcher import Launcher

from .workers import who


@pytest.fixture(scope="session")
def _launcher(pytestconfig):
    launcher = Launcher(pytestconfig)
    launcher.kind = "core"
    yield launcher
    launcher.stop_all(wait=True)


@pytest.fixture
def launch(_launcher):
    """Start servers that live as long as one test."""
    started = []

    def start(models, *options, **kwargs):
        server = _launcher.start(models, *options, **kwargs)
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def server(launch):
    """Start servers of two workers, with a model that returns the answering worker."""

    def start(*options, models=(who,), **kwargs):
        return launch([*models], "--workers=2", "--exit-timeout-secs=10", *options, **kwargs)

    return start


@pytest.fixture(scope="module")
def launch_for_all(_launcher):
    """Start servers that live as long as the tests of a module."""
    started = []

    def start(models, *options, **kwargs):
        server = _launcher.start(models, *options, **kwargs)
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()
