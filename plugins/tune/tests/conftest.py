"""Folders for the tests, and the modules beside them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # sleeping_model, virtual_server


@pytest.fixture
def repository(tmp_path):
    pytest.importorskip("backend_python")
    made = tmp_path / "models"
    made.mkdir()
    return made
