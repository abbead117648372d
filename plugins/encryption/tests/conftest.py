"""A model in a folder, what an agent is called with, and a manager that loads models."""

import pytest
from core_encryption.format import new_key
from unit.conftest import folder, other
from unit.lifecycle.conftest import backend, config, manage, refusal, started, ticker
from unit.repository.agents.conftest import model, seen

__all__ = [
    "backend",
    "config",
    "folder",
    "manage",
    "model",
    "other",
    "refusal",
    "seen",
    "started",
    "ticker",
]


@pytest.fixture
def key(monkeypatch):
    key = new_key()
    monkeypatch.setenv("CORE_MODEL_KEY", key)
    return key
