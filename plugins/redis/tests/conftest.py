"""A whole server over model folders; the installed plugins are loaded, as a server does."""

import pytest
from flow.lifecycle.conftest import ask, backend, models, serve

from core import plugins

__all__ = ["ask", "backend", "models", "serve"]


@pytest.fixture(autouse=True, scope="session")
def _hooks():
    plugins.load_hooks()
