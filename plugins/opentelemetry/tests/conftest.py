"""A collector on loopback, for tests that send spans."""

import pytest
from collector import Collector


@pytest.fixture
def collector(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    found = Collector().start()
    yield found
    found.close()
