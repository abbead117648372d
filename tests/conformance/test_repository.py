"""Model repository control in explicit mode: index, load, unload."""

import threading

import pytest
from conformance.catalog import FAIL_SYNTAX
from conformance.model import Model
from conformance.protocol import refused, tensor, wait_until
from conformance.repository_control import EXPLICIT, double, index, load, state, unload
from tritonclient.utils import InferenceServerException


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
