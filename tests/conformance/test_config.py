"""The model configuration endpoint, and the fields that the server completes."""

import pytest
from conformance.model import Model
from conformance.protocol import refused


@pytest.fixture(scope="module")
def server(launch):
    return launch(
        [
            "auto_complete",
            "auto_decoupled",
            "batch_recorder",
            "sequence_direct",
            "repeat",
            Model("no_config", "auto_complete", config=False),
            Model(
                "counted",
                "plain",
                config="""
name: "counted"
backend: "python"
max_batch_size: 2
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { name: "two" count: 2 kind: KIND_CPU } ]
version_policy: { specific { versions: [ 1 ] } }
""",
            ),
            Model(
                "queued",
                "plain",
                config="""
backend: "python"
max_batch_size: 16
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 250
  priority_levels: 3
  default_priority_level: 2
  default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 9000000
                         allow_timeout_override: true max_queue_size: 5 }
}
""",
            ),
        ]
    )


def config(server, name):
    response = server.get(f"/v2/models/{name}/config")
    assert response.status == 200
    return response.json


def test_config_has_the_name_of_the_folder(server):
    assert config(server, "queued")["name"] == "queued"


def test_config_keeps_inputs_and_outputs(basic):
    found = config(basic, "add_sub")
    assert [(entry["name"], entry["data_type"], entry["dims"]) for entry in found["input"]] == [
        ("INPUT0", "TYPE_FP32", [4]),
        ("INPUT1", "TYPE_FP32", [4]),
    ]
    assert [entry["name"] for entry in found["output"]] == ["OUTPUT0", "OUTPUT1"]
    assert found["max_batch_size"] == 8
    assert found["backend"] == "python"


def test_config_is_the_same_for_a_version(basic):
    assert basic.get("/v2/models/plain/versions/1/config").json == config(basic, "plain")


def test_config_fills_in_the_version_policy(basic):
    assert config(basic, "plain")["version_policy"] == {"latest": {"num_versions": 1}}


def test_config_fills_in_one_cpu_instance_named_after_the_model(basic):
    groups = config(basic, "plain")["instance_group"]
    assert len(groups) == 1
    assert groups[0]["name"] == "plain"
    assert groups[0]["kind"] == "KIND_CPU"
    assert groups[0]["count"] == 1


def test_config_fills_in_the_file_name_of_the_model(basic):
    assert config(basic, "plain")["default_model_filename"] == "model.py"


def test_config_lists_repeated_fields_even_when_they_are_empty(basic):
    found = config(basic, "plain")
    for name in ("batch_input", "batch_output", "model_warmup"):
        assert found[name] == []


def test_config_shows_defaults_of_an_input(basic):
    entry = config(basic, "plain")["input"][0]
    assert entry["optional"] is False
    assert entry["allow_ragged_batch"] is False
    assert entry["is_shape_tensor"] is False
    assert entry["format"] == "FORMAT_NONE"


def test_config_shows_optional_inputs(basic):
    assert [entry["optional"] for entry in config(basic, "optional_inputs")["input"]] == [
        False,
        True,
        True,
    ]


def test_config_shows_a_reshape(basic):
    assert config(basic, "reshaped")["input"][0]["reshape"] == {"shape": []}


def test_config_shows_parameters(basic):
    assert config(basic, "plain")["parameters"] == {"colour": {"string_value": "green"}}


def test_config_shows_the_label_file(basic):
    labels = [entry["label_filename"] for entry in config(basic, "classifier")["output"]]
    assert labels == ["labels.txt", ""]


def test_config_shows_dynamic_batching(server):
    found = config(server, "queued")["dynamic_batching"]
    assert found["preferred_batch_size"] == [4, 8]
    assert found["max_queue_delay_microseconds"] == 250
    assert found["preserve_ordering"] is False
    assert found["priority_levels"] == 3
    assert found["default_priority_level"] == 2
    policy = found["default_queue_policy"]
    assert policy["timeout_action"] == "REJECT"
    assert policy["default_timeout_microseconds"] == 9000000
    assert policy["allow_timeout_override"] is True
    assert policy["max_queue_size"] == 5


def test_config_shows_sequence_batching(server):
    found = config(server, "sequence_direct")["sequence_batching"]
    assert found["max_sequence_idle_microseconds"] == 5000000
    assert [entry["name"] for entry in found["control_input"]] == [
        "START",
        "END",
        "READY",
        "CORRID",
    ]
    assert found["control_input"][3]["control"][0]["kind"] == "CONTROL_SEQUENCE_CORRID"
    assert found["control_input"][3]["control"][0]["data_type"] == "TYPE_UINT64"
    assert "direct" in found


def test_config_shows_the_transaction_policy(server):
    assert config(server, "repeat")["model_transaction_policy"] == {"decoupled": True}


def test_config_shows_instance_count_and_version_policy(server):
    found = config(server, "counted")
    assert found["instance_group"][0]["count"] == 2
    assert found["instance_group"][0]["name"] == "two"
    assert found["version_policy"] == {"specific": {"versions": [1]}}


@pytest.mark.parametrize("name", ["auto_complete", "no_config"])
def test_model_completes_its_own_config(server, name):
    found = config(server, name)
    assert found["name"] == name
    assert found["backend"] == "python"
    assert [
        (entry["name"], entry["data_type"], entry["dims"], entry["optional"])
        for entry in found["input"]
    ] == [("INPUT0", "TYPE_FP32", [3], False), ("INPUT1", "TYPE_FP32", [3], True)]
    assert found["output"][0]["dims"] == [3]
    assert found["max_batch_size"] == 4
    assert "dynamic_batching" in found


def test_completed_config_shows_in_the_metadata(server):
    metadata = server.get("/v2/models/auto_complete").json
    assert metadata["inputs"][0] == {"name": "INPUT0", "datatype": "FP32", "shape": [-1, 3]}


def test_completed_model_answers(server):
    response = server.infer(
        "no_config",
        {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]},
    )
    assert response.json["outputs"][0]["data"] == [2, 3, 4]


def test_model_can_complete_the_transaction_policy(server):
    assert config(server, "auto_decoupled")["model_transaction_policy"] == {"decoupled": True}


def test_grpc_config_matches_http(basic, grpc):
    over_grpc = grpc.get_model_config("add_sub").config
    assert over_grpc.name == "add_sub"
    assert over_grpc.max_batch_size == 8
    assert [entry.name for entry in over_grpc.input] == ["INPUT0", "INPUT1"]
    assert [list(entry.dims) for entry in over_grpc.output] == [[4], [4]]
    assert over_grpc.instance_group[0].count == 1
    assert over_grpc.version_policy.latest.num_versions == 1


def test_grpc_config_as_json_uses_the_names_of_the_schema(grpc):
    found = grpc.get_model_config("plain", as_json=True)["config"]
    assert found["max_batch_size" if "max_batch_size" in found else "name"] in (0, "plain")
    assert found["input"][0]["data_type"] == "TYPE_FP32"


def test_config_of_an_unknown_version_is_refused(basic):
    refused(basic.get("/v2/models/plain/versions/9/config"), 404)
