"""Folders without a TritonPythonModel, served by a real server."""

import json

import pytest
from backend_python import backend
from backend_python.api.model_config import ModelConfig
from core_adapters.adapter import model_of_file
from core_testing.served import Served


@pytest.fixture
def repository(tmp_path):
    path = tmp_path / "models"
    path.mkdir()
    return path


@pytest.fixture
def server(repository):
    """A server of these models; `load` loads one."""
    with Served(backend, repository) as served:
        yield served


@pytest.fixture
def version(repository):
    """Make the folder of a version; with a config.pbtxt if it is given."""

    def make(config=None, name="example"):
        folder = repository / name / "1"
        folder.mkdir(parents=True)
        if config is not None:
            (folder.parent / "config.pbtxt").write_text(config)
        return folder

    return make


@pytest.fixture
def completed():
    """Return the metadata of a file, without a server: names → (datatype, dims), of inputs and outputs."""

    def complete(file, max_batch_size=0, parameters=None):
        config = ModelConfig(
            json.dumps(
                {
                    "name": "model",
                    "max_batch_size": max_batch_size,
                    "input": [],
                    "output": [],
                    "parameters": {k: {"string_value": v} for k, v in (parameters or {}).items()},
                }
            )
        )
        found = model_of_file(str(file)).auto_complete_config(config).as_dict()
        return tuple(
            {each["name"]: (each["data_type"], each["dims"]) for each in found[kind]}
            for kind in ("input", "output")
        )

    return complete
