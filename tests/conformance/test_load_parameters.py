"""Loads with a configuration or files in place of those in the repository."""

import base64
import json

import numpy as np
import pytest
from conformance.protocol import data_of, grpc_input, refused, tensor, wait_until
from conformance.repository_control import EXPLICIT, PLAIN_CONFIG, double, load, unload


@pytest.fixture(scope="module")
def explicit(launch):
    return launch(["plain", "versioned_all"], EXPLICIT)


@pytest.fixture
def fresh(explicit):
    """The explicit server with plain unloaded."""
    unload(explicit, "plain")
    yield explicit
    unload(explicit, "plain")


def test_load_with_a_config_in_place_of_the_file(fresh):
    config = {**PLAIN_CONFIG, "parameters": {"colour": {"string_value": "blue"}}}
    response = load(fresh, "plain", {"parameters": {"config": json.dumps(config)}})
    assert response.status == 200, response.body
    assert fresh.get("/v2/models/plain/config").json["parameters"] == {
        "colour": {"string_value": "blue"}
    }
    load(fresh, "plain")
    assert fresh.get("/v2/models/plain/config").json["parameters"] == {
        "colour": {"string_value": "green"}
    }


def test_config_in_place_of_the_file_can_change_the_batch_size(fresh):
    config = {**PLAIN_CONFIG, "max_batch_size": 4}
    load(fresh, "plain", {"parameters": {"config": json.dumps(config)}})
    assert fresh.get("/v2/models/plain").json["inputs"][0]["shape"] == [-1, -1]


def test_load_with_a_config_that_is_no_json_is_refused(fresh):
    refused(load(fresh, "plain", {"parameters": {"config": "{"}}))
    assert not fresh.ready("plain")


def test_failed_reload_keeps_the_loaded_model(fresh):
    load(fresh, "plain")
    refused(load(fresh, "plain", {"parameters": {"config": "{"}}))
    assert double(fresh) == [6]


def test_load_with_files_makes_a_model_of_them(explicit):
    code = (explicit.repository / "plain" / "1" / "model.py").read_text().replace("* 2", "* 7")
    response = load(
        explicit,
        "from_files",
        {
            "parameters": {
                "config": json.dumps(PLAIN_CONFIG),
                "file:1/model.py": base64.b64encode(code.encode()).decode(),
            }
        },
    )
    assert response.status == 200, response.body
    answer = explicit.infer("from_files", {"inputs": [tensor("INPUT0", [2])]})
    assert data_of(answer) == [14]
    unload(explicit, "from_files")


def test_load_with_files_needs_a_config(explicit):
    refused(
        load(
            explicit,
            "from_files",
            {"parameters": {"file:1/model.py": base64.b64encode(b"x = 1").decode()}},
        )
    )


def test_load_with_files_in_several_versions(explicit):
    code = (explicit.repository / "versioned_all" / "1" / "model.py").read_text()
    encoded = base64.b64encode(code.encode()).decode()
    config = {**PLAIN_CONFIG, "version_policy": {"all": {}}}
    for kind in ("input", "output"):
        config[kind] = [{**PLAIN_CONFIG[kind][0], "data_type": "TYPE_INT32"}]
    response = load(
        explicit,
        "files_with_versions",
        {
            "parameters": {
                "config": json.dumps(config),
                "file:4/model.py": encoded,
                "file:6/model.py": encoded,
            }
        },
    )
    assert response.status == 200, response.body
    assert explicit.get("/v2/models/files_with_versions").json["versions"] == ["4", "6"]
    unload(explicit, "files_with_versions")


def test_client_library_loads_with_config_and_files(explicit):
    client = explicit.grpc_client()
    code = (explicit.repository / "plain" / "1" / "model.py").read_text()
    client.load_model(
        "over_grpc", config=json.dumps(PLAIN_CONFIG), files={"file:1/model.py": code.encode()}
    )
    assert client.is_model_ready("over_grpc")
    result = client.infer("over_grpc", [grpc_input("INPUT0", np.array([4], np.float32))])
    assert result.as_numpy("OUTPUT0").tolist() == [8]
    client.unload_model("over_grpc")
    assert wait_until(lambda: not client.is_model_ready("over_grpc"))


def test_unknown_load_parameter_is_refused(fresh):
    refused(load(fresh, "plain", {"parameters": {"nothing": "x"}}))


def test_file_outside_the_model_is_refused(explicit, tmp_path):
    response = load(
        explicit,
        "escaping",
        {
            "parameters": {
                "config": json.dumps(PLAIN_CONFIG),
                "file:../escaped.txt": base64.b64encode(b"out").decode(),
            }
        },
    )
    assert response.status >= 400
    assert not (explicit.repository.parent / "escaped.txt").exists()
