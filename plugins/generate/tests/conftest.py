"""Models of engines in a server."""

import pytest
from backend_testing.letters import letters


@pytest.fixture
def serve(model_repository, serve_repository):
    """A function (config, backend) that adds the model m to a repository and serves it."""

    def start(config="", backend=letters):
        model_repository.add("m", config)
        return serve_repository(backend)

    return start
