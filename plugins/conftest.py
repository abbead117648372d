"""Tests of plugins run as a server does: with all installed plugins registered."""

import pytest

from core import plugins


@pytest.fixture(autouse=True, scope="session")
def _hooks():
    plugins.load_hooks()
