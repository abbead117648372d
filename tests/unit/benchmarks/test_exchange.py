"""The bytes of requests, and the check of answers."""

import json

import numpy as np
import pytest

from benchmarks import exchange
from benchmarks.models.sample import SAMPLES, Answer, Sample, samples
from benchmarks.scenarios import SCENARIOS
from frontends.grpc.protocol.messages import ModelInferRequest, ModelInferResponse

ONE = Sample(
    {"INPUT0": np.array([1.5, 2.0], np.float32)}, {"OUTPUT0": np.array([1.5, 2.0], np.float32)}
)


def test_a_json_request_has_the_data_in_it():
    made = exchange.http_json("m", ONE)

    assert made.path == "/v2/models/m/infer"
    assert json.loads(made.body)["inputs"] == [
        {"name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [1.5, 2.0]}
    ]


def test_a_binary_request_has_the_data_after_the_json():
    made = exchange.http_binary("m", ONE)
    size = int(made.headers["Inference-Header-Content-Length"])

    assert json.loads(made.body[:size])["parameters"] == {"binary_data_output": True}
    assert made.body[size:] == ONE.inputs["INPUT0"].tobytes()


def test_a_grpc_request_is_a_message_of_the_protocol():
    message = ModelInferRequest.FromString(exchange.grpc_message("m", ONE).body)

    assert (message.model_name, message.inputs[0].shape) == ("m", [2])
    assert message.raw_input_contents[0] == ONE.inputs["INPUT0"].tobytes()


def test_a_grpc_frame_has_the_length_of_its_message():
    assert exchange.grpc_frame(b"abc") == b"\x00\x00\x00\x00\x03abc"


def test_right_answers_are_right_in_every_form():
    entry = {"name": "OUTPUT0", "datatype": "FP32", "shape": [2]}
    as_json = json.dumps({"outputs": [{**entry, "data": [1.5, 2.0]}]}).encode()
    head = json.dumps({"outputs": [{**entry, "parameters": {"binary_data_size": 8}}]}).encode()
    raw = ONE.outputs["OUTPUT0"].tobytes()
    message = ModelInferResponse(raw_output_contents=[raw])
    message.outputs.add(**entry)
    typed = ModelInferResponse()
    typed.outputs.add(**entry).contents.fp32_contents.extend([1.5, 2.0])

    assert ONE.difference(exchange.read_http(as_json, None)) == ""
    assert ONE.difference(exchange.read_http(head + raw, len(head))) == ""
    assert ONE.difference(exchange.read_grpc(message.SerializeToString())) == ""
    assert ONE.difference(exchange.read_grpc(typed.SerializeToString())) == ""


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"OUTPUT0": np.array([1.5, 3.0], np.float32)}, "other values"),
        ({"OUTPUT0": np.array([[1.5, 2.0]], np.float32)}, r"float32\[1, 2\]"),
        ({"OUTPUT0": np.array([1.5, 2.0])}, "float64"),
        ({"WRONG": np.array([1.5, 2.0], np.float32)}, "outputs"),
        ({}, "outputs"),
    ],
)
def test_a_wrong_answer_is_reported(found, words):
    import re

    assert re.search(words, ONE.difference(Answer(found)))


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda each: each.name)
def test_every_scenario_has_a_request_for_each_of_its_servers(scenario):
    for server in scenario.servers:
        models, samples = scenario.asked_of(server)

        assert models and samples
        assert all(sample.inputs and sample.outputs for sample in samples)


def test_samples_are_the_same_in_every_run():
    once, again = SAMPLES["add_sub"](), SAMPLES["add_sub"]()

    assert all(np.array_equal(once.inputs[name], again.inputs[name]) for name in once.inputs)


@pytest.mark.parametrize("name", ["identity_mixed", "add_sub_mixed"])
def test_mixed_requests_have_1_to_8_rows_in_turn_and_ids_and_numbers_of_their_own(name):
    found = samples(name)

    assert [len(each.inputs["INPUT0"]) for each in found[:9]] == [1, 2, 3, 4, 5, 6, 7, 8, 1]
    assert len({each.id for each in found}) == len(found)
    assert len({each.inputs["INPUT0"].tobytes() for each in found}) == len(found)
    rows = [len(each.inputs["INPUT0"]) for each in found]
    assert (
        sum(rows) / len(rows) == 4.5
    )  # as many as the half of 4 and the half of 5 in requests alike


@pytest.mark.parametrize("form", ["http-json", "http-binary", "grpc"])
def test_an_id_is_in_the_request_and_checked_in_the_response(form):
    named = Sample(ONE.inputs, ONE.outputs, id="one")

    asked = exchange.exchange(form, ["m"], ONE, named)

    assert b"one" not in asked.requests[0].body
    assert b"one" in asked.requests[1].body
    assert named.difference(Answer(ONE.outputs)) == "id '', expected 'one'"
    assert named.difference(Answer(ONE.outputs, "one")) == ""


def test_several_models_get_requests_in_turn():
    asked = exchange.exchange("http-json", ["m", "n"], ONE)

    assert [each.path for each in asked.requests] == ["/v2/models/m/infer", "/v2/models/n/infer"]
