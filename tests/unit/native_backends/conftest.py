"""Players, served."""

from contextlib import ExitStack

import pytest
from core_testing.served import Served
from unit.native_backends import playing


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """players.cpp as a shared library."""
    return playing.built_players(tmp_path_factory.mktemp("players"))


@pytest.fixture
def serve(tmp_path, library):
    """Return serve(player, …), which returns a Served with the loaded model `example`; see write_model."""
    with ExitStack() as running:

        def start(player, *, change=None, backend=None, **model):
            playing.write_model(tmp_path / "models", **model)
            backend = backend or playing.backend_of(library, player, change)
            served = running.enter_context(Served(backend, tmp_path / "models"))
            served.load()
            return served

        yield start
        library.player_go(1)
        library.player_go(0)
