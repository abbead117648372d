"""Ensembles."""

import numpy as np
import pytest
from conformance.catalog import identity
from conformance.model import Model
from conformance.protocol import (
    data_of,
    grpc_input,
    http_input,
    http_output,
    outputs_of,
    refused,
    tensor,
)
from conformance.streams import Stream

MODELS = [
    "add_sub",
    "faulty",
    "optional_inputs",
    "reshaped",
    "repeat",
    identity("identity_fp32", "FP32"),
    Model(
        "identity_int32_plain",
        "identity",
        config="""
backend: "python"
max_batch_size: 0
input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]
""",
    ),
    "ensemble_linear",
    "ensemble_fan_out",
    "ensemble_faulty",
    "ensemble_reshape",
    "ensemble_optional",
    "ensemble_decoupled",
]
LEFT = tensor("LEFT", [1, 2, 3, 4], [1, 4])
RIGHT = tensor("RIGHT", [10, 20, 30, 40], [1, 4])


@pytest.fixture(scope="module")
def server(launch):
    return launch(MODELS)


def test_output_of_one_step_is_the_input_of_the_next(server):
    response = server.infer("ensemble_linear", {"inputs": [LEFT, RIGHT]})
    assert response.json["model_name"] == "ensemble_linear"
    assert response.json["model_version"] == "1"
    assert [entry["name"] for entry in response.json["outputs"]] == ["RESULT"]
    assert data_of(response, "RESULT") == [11, 22, 33, 44]


def test_steps_run_as_their_inputs_are_there(server):
    found = outputs_of(server.infer("ensemble_fan_out", {"inputs": [LEFT, RIGHT]}))
    assert found["SUM"]["data"] == [11, 22, 33, 44]
    assert found["DOUBLE_LEFT"]["data"] == [2, 4, 6, 8]
    assert found["COPY"]["data"] == [1, 2, 3, 4]


def test_only_named_outputs_of_an_ensemble_come(server):
    response = server.infer(
        "ensemble_fan_out", {"inputs": [LEFT, RIGHT], "outputs": [{"name": "COPY"}]}
    )
    assert [entry["name"] for entry in response.json["outputs"]] == ["COPY"]


def test_ensemble_keeps_the_batch(server):
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    result = server.http_client().infer(
        "ensemble_linear", [http_input("LEFT", rows), http_input("RIGHT", rows)]
    )
    assert np.array_equal(result.as_numpy("RESULT"), rows * 2)


def test_ensemble_over_grpc(server):
    rows = np.ones((2, 4), np.float32)
    result = server.grpc_client().infer(
        "ensemble_linear", [grpc_input("LEFT", rows), grpc_input("RIGHT", rows)], request_id="e"
    )
    assert result.as_numpy("RESULT").tolist() == [[2] * 4] * 2
    assert result.get_response().id == "e"


def test_ensemble_checks_its_own_inputs(server):
    refused(server.infer("ensemble_linear", {"inputs": [LEFT]}), 400)
    refused(
        server.infer("ensemble_linear", {"inputs": [LEFT, tensor("RIGHT", [1, 2], [1, 2])]}), 400
    )
    refused(server.infer("ensemble_linear", {"inputs": [LEFT, {**RIGHT, "name": "INPUT1"}]}), 400)


def test_batch_larger_than_the_maximum_of_an_ensemble_is_refused(server):
    zeros = [0] * 36
    refused(
        server.infer(
            "ensemble_linear",
            {"inputs": [tensor("LEFT", zeros, [9, 4]), tensor("RIGHT", zeros, [9, 4])]},
        ),
        400,
    )


def test_unknown_output_of_an_ensemble_is_refused(server):
    refused(
        server.infer("ensemble_linear", {"inputs": [LEFT, RIGHT], "outputs": [{"name": "sum"}]}),
        400,
    )


@pytest.mark.parametrize(
    "mode,text", [("raise", "raised by the model"), ("error", "error of the response")]
)
def test_failing_step_fails_the_ensemble_with_its_text(server, mode, text):
    response = server.infer(
        "ensemble_faulty", {"inputs": [tensor("MODE", [mode], datatype="BYTES")]}
    )
    assert text in refused(response, 500)


def test_ensemble_answers_after_a_failure(server):
    response = server.infer(
        "ensemble_faulty", {"inputs": [tensor("MODE", ["fine"], datatype="BYTES")]}
    )
    assert data_of(response, "RESULT") == ["fine"]


def test_step_that_leaves_out_an_output_fails_or_leaves_it_out(server):
    response = server.infer(
        "ensemble_faulty", {"inputs": [tensor("MODE", ["missing_output"], datatype="BYTES")]}
    )
    assert data_of(response, "RESULT") == ["missing_output"]


def test_reshape_of_a_step_is_applied(server):
    output = outputs_of(
        server.infer("ensemble_reshape", {"inputs": [tensor("INPUT0", [1, 2], [2, 1])]})
    )["RANK"]
    assert output["data"] == [1, 1]
    assert output["shape"] == [2, 1]


def test_optional_input_of_an_ensemble_may_be_given(server):
    pair = tensor("INPUT0", [1, 2], [1, 2], "INT32")
    more = tensor("INPUT1", [1, 2], [1, 2], "INT32")
    assert data_of(server.infer("ensemble_optional", {"inputs": [pair, more]}), "NAMES") == [
        "INPUT0,INPUT1"
    ]


def test_optional_input_of_an_ensemble_may_be_left_out(server):
    pair = tensor("INPUT0", [1, 2], [1, 2], "INT32")
    assert data_of(server.infer("ensemble_optional", {"inputs": [pair]}), "NAMES") == ["INPUT0"]


def test_ensemble_with_a_decoupled_step_streams(server):
    with Stream(server) as stream:
        stream.send("ensemble_decoupled", [grpc_input("IN", np.array([4, 5, 6], np.int32))])
        found = stream.take(3)
        assert stream.quiet()
    assert sorted(int(result.as_numpy("RESULT")[0]) for result in found) == [4, 5, 6]


def test_metadata_calls_an_ensemble_an_ensemble(server):
    metadata = server.get("/v2/models/ensemble_linear").json
    assert metadata["platform"] == "ensemble"
    assert [entry["name"] for entry in metadata["inputs"]] == ["LEFT", "RIGHT"]
    assert metadata["outputs"][0]["shape"] == [-1, 4]


def test_config_shows_the_steps(server):
    steps = server.get("/v2/models/ensemble_linear/config").json["ensemble_scheduling"]["step"]
    assert [step["model_name"] for step in steps] == ["add_sub", "identity_fp32"]
    assert steps[0]["input_map"] == {"INPUT0": "LEFT", "INPUT1": "RIGHT"}
    assert steps[1]["output_map"] == {"OUTPUT0": "RESULT"}


def test_ensemble_and_its_steps_count_in_the_statistics(server):
    before = {
        name: server.stats(name)["inference_count"]
        for name in ("ensemble_linear", "add_sub", "identity_fp32")
    }
    server.infer("ensemble_linear", {"inputs": [LEFT, RIGHT]})
    after = {name: server.stats(name)["inference_count"] for name in before}
    assert {name: after[name] - before[name] for name in before} == dict.fromkeys(before, 1)


def test_binary_output_of_an_ensemble(server):
    rows = np.ones((1, 4), np.float32)
    result = server.http_client().infer(
        "ensemble_linear",
        [http_input("LEFT", rows), http_input("RIGHT", rows, binary=False)],
        outputs=[http_output("RESULT", binary_data=True)],
    )
    assert result.as_numpy("RESULT").tolist() == [[2] * 4]


def test_many_concurrent_ensembles_get_their_own_answers(server):
    import concurrent.futures

    def run(number):
        row = tensor("LEFT", [number] * 4, [1, 4])
        return data_of(server.infer("ensemble_linear", {"inputs": [row, RIGHT]}), "RESULT")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(run, range(80)))
    assert found == [[number + more for more in (10, 20, 30, 40)] for number in range(80)]
