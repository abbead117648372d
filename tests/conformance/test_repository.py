"""Model repository control: explicit, poll, none; index, load, unload."""

import base64
import json
import shutil
import threading
import time

import numpy as np
import pytest
from conformance.catalog import FAIL_SYNTAX
from conformance.model import Model
from conformance.protocol import data_of, grpc_input, refused, tensor, texts, wait_until
from conformance.server import StartError
from tritonclient.utils import InferenceServerException

EXPLICIT = "--model-control-mode=explicit"
PLAIN_CONFIG = {
    "backend": "python",
    "max_batch_size": 0,
    "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
    "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
}


@pytest.fixture(scope="module")
def explicit(launch):
    return launch(
        [
            "plain",
            "add_sub",
            "params_echo",
            "versioned_all",
            "fail_init",
            FAIL_SYNTAX,
            "ensemble_linear",
            Model("identity_fp32", "identity"),
            Model("broken_config", "plain", config="input ["),
        ],
        EXPLICIT,
        "--load-model=add_sub",
    )


@pytest.fixture
def fresh(explicit):
    """The explicit server with plain unloaded."""
    unload(explicit, "plain")
    yield explicit
    unload(explicit, "plain")


def load(server, name, body=None):
    return server.post(f"/v2/repository/models/{name}/load", body)


def unload(server, name, body=None):
    response = server.post(f"/v2/repository/models/{name}/unload", body)
    wait_until(lambda: state(server, name) != "UNLOADING")
    return response


def index(server, body=None):
    response = server.post("/v2/repository/index", body)
    assert response.status == 200
    return response.json


def state(server, name, version=None):
    for entry in index(server):
        if entry["name"] == name and version in (None, entry.get("version")):
            return entry.get("state")
    return None


def double(server, value=3):
    return data_of(server.infer("plain", {"inputs": [tensor("INPUT0", [value])]}))


def test_explicit_mode_loads_only_the_named_models(explicit):
    assert explicit.ready("add_sub")
    assert not explicit.ready("versioned_all")


def test_index_lists_every_model_of_the_repository(explicit):
    names = {entry["name"] for entry in index(explicit)}
    assert {"add_sub", "plain", "fail_init", "versioned_all", "ensemble_linear"} <= names


def test_index_of_ready_models_lists_only_those(explicit):
    found = index(explicit, {"ready": True})
    assert {"name": "add_sub", "version": "1", "state": "READY"} in found
    assert all(entry["state"] == "READY" for entry in found)


def test_model_that_was_never_loaded_has_neither_version_nor_state(explicit):
    (entry,) = [entry for entry in index(explicit) if entry["name"] == "params_echo"]
    assert entry == {"name": "params_echo"}


def test_load_makes_a_model_ready(fresh):
    assert load(fresh, "plain").status == 200
    assert fresh.ready("plain")
    assert state(fresh, "plain") == "READY"
    assert double(fresh) == [6]


def test_load_answers_with_an_empty_body(fresh):
    assert load(fresh, "plain").body == b""


def test_unload_ends_a_model(fresh):
    load(fresh, "plain")
    assert unload(fresh, "plain").status == 200
    assert not fresh.ready("plain")
    refused(fresh.infer("plain", {"inputs": [tensor("INPUT0", [1])]}))
    (entry,) = [entry for entry in index(fresh) if entry["name"] == "plain"]
    assert entry["state"] == "UNAVAILABLE"
    assert entry["reason"] == "unloaded"


def test_load_twice_keeps_the_model_ready(fresh):
    assert load(fresh, "plain").status == 200
    assert load(fresh, "plain").status == 200
    assert double(fresh) == [6]


def test_unload_of_a_model_that_is_not_loaded_succeeds(fresh):
    assert unload(fresh, "plain").status == 200


def test_load_of_an_unknown_model_is_refused(explicit):
    assert "absent" in refused(load(explicit, "absent"))


def test_unload_of_an_unknown_model_is_no_failure_of_the_server(explicit):
    assert explicit.post("/v2/repository/models/absent/unload").status in (200, 400, 404)
    assert explicit.alive()


@pytest.mark.parametrize("name", ["fail_init", "fail_syntax", "broken_config"])
def test_load_of_a_model_that_fails_is_refused(explicit, name):
    refused(load(explicit, name))
    assert not explicit.ready(name)


def test_index_gives_the_reason_of_a_failed_load(explicit):
    load(explicit, "fail_init")
    (entry,) = [entry for entry in index(explicit) if entry["name"] == "fail_init"]
    assert entry["state"] == "UNAVAILABLE"
    assert "refuses to initialize" in entry["reason"]


def test_failed_load_leaves_other_models_ready(explicit):
    load(explicit, "fail_init")
    assert explicit.ready("add_sub")


def test_load_takes_a_changed_file(fresh):
    load(fresh, "plain")
    assert double(fresh) == [6]
    file = fresh.repository / "plain" / "1" / "model.py"
    text = file.read_text()
    try:
        file.write_text(text.replace("* 2", "* 5"))
        assert double(fresh) == [6]
        load(fresh, "plain")
        assert double(fresh) == [15]
    finally:
        file.write_text(text)


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


def test_loading_an_ensemble_loads_its_steps(explicit):
    assert load(explicit, "ensemble_linear").status == 200
    assert explicit.ready("ensemble_linear") and explicit.ready("identity_fp32")
    unload(explicit, "ensemble_linear", {"parameters": {"unload_dependents": True}})


def test_unload_dependents_unloads_the_steps_too(explicit):
    load(explicit, "ensemble_linear")
    unload(explicit, "ensemble_linear", {"parameters": {"unload_dependents": True}})
    assert wait_until(lambda: not explicit.ready("identity_fp32"))
    assert not explicit.ready("ensemble_linear")
    load(explicit, "add_sub")


def test_unloading_an_ensemble_keeps_models_that_were_loaded_by_name(explicit):
    load(explicit, "add_sub")
    load(explicit, "ensemble_linear")
    unload(explicit, "ensemble_linear")
    assert explicit.ready("add_sub")


def test_version_policy_decides_the_loaded_versions(explicit):
    load(explicit, "versioned_all")
    versions = {
        entry["version"]: entry["state"]
        for entry in index(explicit)
        if entry["name"] == "versioned_all"
    }
    assert versions == {"1": "READY", "2": "READY", "3": "READY"}
    unload(explicit, "versioned_all")


def test_grpc_index_load_and_unload(fresh):
    client = fresh.grpc_client()
    client.load_model("plain")
    models = {
        (model.name, model.version): model.state
        for model in client.get_model_repository_index().models
    }
    assert models[("plain", "1")] == "READY"
    client.unload_model("plain")
    assert wait_until(lambda: not client.is_model_ready("plain"))


def test_grpc_load_of_an_unknown_model_fails(explicit):
    with pytest.raises(InferenceServerException):
        explicit.grpc_client().load_model("absent")


def test_model_path_outside_the_repository_is_refused(explicit):
    for name in ("..", "..%2f..", "plain%2f..%2fplain"):
        response = load(explicit, name)
        assert response.status >= 400
    with pytest.raises(InferenceServerException):
        explicit.grpc_client().load_model("../plain")


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


def test_reload_of_a_model_in_use_answers_every_request(fresh):
    load(fresh, "plain")
    stop, failed = threading.Event(), []

    def run():
        while not stop.is_set():
            response = fresh.infer("plain", {"inputs": [tensor("INPUT0", [3])]})
            if response.status != 200 or response.json["outputs"][0]["data"] != [6]:
                failed.append(response.body)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        assert load(fresh, "plain").status == 200
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed


def test_none_mode_refuses_load_and_unload_with_503(basic):
    refused(load(basic, "plain"), 503)
    refused(basic.post("/v2/repository/models/plain/unload"), 503)
    assert basic.ready("plain")


def test_none_mode_lists_every_version_in_the_index(basic):
    versions = [entry["version"] for entry in index(basic) if entry["name"] == "versioned_all"]
    assert sorted(versions) == ["1", "2", "3"]


@pytest.fixture(scope="module")
def polled(launch):
    return launch(["plain"], "--model-control-mode=poll", "--repository-poll-secs=1")


def settle():
    """Let some polls pass: a file that vanishes while its model loads is another case."""
    time.sleep(4)


def test_polling_finds_new_changed_and_removed_models(polled):
    assert polled.ready("plain")
    polled.add_model("add_sub")
    assert wait_until(lambda: polled.ready("add_sub"))
    settle()
    file = polled.repository / "plain" / "1" / "model.py"
    file.write_text(file.read_text().replace("* 2", "* 9"))
    assert wait_until(lambda: double(polled) == [27])
    settle()
    polled.remove_model("add_sub")
    assert wait_until(lambda: not polled.ready("add_sub"))


def test_polling_finds_a_new_version(polled):
    settle()
    shutil.copytree(polled.repository / "plain" / "1", polled.repository / "plain" / "2")
    assert wait_until(lambda: polled.ready("plain", 2))
    assert wait_until(lambda: not polled.ready("plain", 1))


def test_poll_mode_refuses_load_and_unload(polled):
    refused(load(polled, "plain"), 503)


def test_server_exits_when_a_model_fails_at_the_start(launch_once):
    with pytest.raises(StartError) as error:
        launch_once(["plain", "fail_init"])
    assert error.value.returncode not in (0, None)


def test_server_goes_on_when_it_is_told_not_to_exit_on_error(launch_once):
    server = launch_once(["plain", "fail_init"], "--exit-on-error=false", wait="live")
    assert wait_until(lambda: server.ready("plain"))
    assert not server.ready("fail_init")
    assert server.get("/v2/health/ready").status == 400
    assert double(server) == [6]


def test_server_is_ready_without_strict_readiness_when_a_model_failed(launch_once):
    server = launch_once(
        ["plain", "fail_init"], "--exit-on-error=false", "--strict-readiness=false"
    )
    assert not server.ready("fail_init")


def test_all_models_can_be_loaded_at_the_start_of_explicit_mode(launch_once):
    server = launch_once(["plain", "add_sub"], EXPLICIT, "--load-model=*")
    assert server.ready("plain") and server.ready("add_sub")


def test_named_model_that_is_absent_ends_the_start(launch_once):
    with pytest.raises(StartError):
        launch_once(["plain"], EXPLICIT, "--load-model=absent")


def test_empty_repository_is_allowed(launch_once):
    server = launch_once([])
    assert index(server) == []


def test_failing_model_answers_nothing_and_others_do(launch_once):
    server = launch_once(["faulty", FAIL_SYNTAX], "--exit-on-error=false", wait="live")
    assert wait_until(lambda: server.ready("faulty"))
    result = server.grpc_client().infer("faulty", [grpc_input("MODE", texts("ok"), "BYTES")])
    assert result.as_numpy("OUTPUT0").tolist() == [b"ok"]


@pytest.mark.parametrize(
    "policy,expected",
    [
        ("latest { num_versions: 2 }", ["2", "3"]),
        ("specific { versions: [ 1, 3 ] }", ["1", "3"]),
        ("all { }", ["1", "2", "3"]),
        (None, ["3"]),
    ],
)
def test_version_policy_chooses_versions(explicit, policy, expected):
    name = "policy_" + (policy or "default").split()[0]
    explicit.add_model(
        Model(
            name,
            "versioned_all",
            config="""
backend: "python"
max_batch_size: 0
input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""
            + (f"version_policy: {{ {policy} }}" if policy else ""),
        )
    )
    assert load(explicit, name).status == 200
    assert explicit.get(f"/v2/models/{name}").json["versions"] == expected
    refused_version = {"1", "2", "3"} - set(expected)
    for version in refused_version:
        assert not explicit.ready(name, version)
    unload(explicit, name)


def test_folders_that_are_no_number_are_no_version(explicit):
    explicit.add_model(
        Model("odd_folders", "plain", files={"notes/readme.txt": "x", "0_old/model.py": "x"})
    )
    assert load(explicit, "odd_folders").status == 200
    assert explicit.get("/v2/models/odd_folders").json["versions"] == ["1"]
    unload(explicit, "odd_folders")
