"""The generate and generate_stream endpoints."""

import json

import pytest
from conformance.model import Model
from conformance.protocol import refused


@pytest.fixture(scope="module")
def server(launch):
    return launch(["generator", "generator_stream", "plain", "add_sub"])


def generate(server, body, model="generator", **kwargs):
    return server.post(f"/v2/models/{model}/generate", body, **kwargs)


def stream(server, body, model="generator_stream", **kwargs):
    return server.post(f"/v2/models/{model}/generate_stream", body, **kwargs)


def events(response):
    """The JSON objects of an event stream."""
    assert response.status == 200, response.body
    parts = response.body.decode().split("\n\n")
    assert parts.pop() == ""
    found = []
    for part in parts:
        assert part.startswith("data: "), part
        found.append(json.loads(part[len("data: ") :]))
    return found


def test_outputs_are_members_of_the_answer(server):
    response = generate(server, {"text_input": "hello"})
    assert response.status == 200
    assert response.json == {
        "model_name": "generator",
        "model_version": "1",
        "text_output": "hello",
        "length": 5,
    }
    assert response.headers["Content-Type"] == "application/json"


def test_single_values_and_lists_of_one_are_the_same(server):
    assert generate(server, {"text_input": ["hello"]}).json["text_output"] == "hello"


def test_request_id_comes_back(server):
    assert generate(server, {"id": "g1", "text_input": "x"}).json["id"] == "g1"


def test_members_that_are_no_inputs_are_parameters(server):
    answer = generate(
        server, {"text_input": "x", "temperature_level": 3, "word": "w", "truth": True}
    ).json
    assert answer["text_output"] == 'x {"temperature_level": 3, "truth": true, "word": "w"}'


def test_parameters_may_be_given_as_an_object(server):
    answer = generate(server, {"text_input": "x", "parameters": {"a": 1, "b": "two"}}).json
    assert answer["text_output"] == 'x {"a": 1, "b": "two"}'


def test_text_may_hold_any_character(server):
    text = 'snow \u2603 \U0001f600 "quotes" \\ and\nlines'
    assert generate(server, {"text_input": text}).json["text_output"] == text


def test_version_may_be_named(server):
    response = server.post("/v2/models/generator/versions/1/generate", {"text_input": "v"})
    assert response.json["text_output"] == "v"
    refused(server.post("/v2/models/generator/versions/9/generate", {"text_input": "v"}), 400, 404)


def test_unknown_model_is_refused(server):
    refused(generate(server, {"text_input": "x"}, model="absent"), 400, 404)


def test_missing_input_is_refused(server):
    assert "text_input" in refused(generate(server, {}), 400)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"5"])
def test_body_that_is_no_object_is_refused(server, body):
    refused(generate(server, body))


@pytest.mark.parametrize("value", [{"a": 1}, None])
def test_value_that_does_not_fit_the_input_is_refused(server, value):
    refused(generate(server, {"text_input": value}))


def test_value_of_the_wrong_type_is_refused(server):
    refused(generate(server, {"text_input": "x", "count": "many"}))


def test_error_of_the_model_is_refused_with_its_text(server):
    assert refused(generate(server, {"text_input": "FAIL"})) == "asked to fail"


def test_decoupled_model_with_one_response_may_be_generated(server):
    response = generate(server, {"text_input": "one", "count": 1}, model="generator_stream")
    assert response.json["text_output"] == "one"


@pytest.mark.parametrize("count", [0, 2, 3])
def test_generate_needs_exactly_one_response(server, count):
    """The error is in the body; the status may have been sent before it was known."""
    response = generate(server, {"text_input": "x", "count": count}, model="generator_stream")
    assert set(response.json) == {"error"}
    assert server.alive()


def test_stream_is_one_event_for_each_response(server):
    found = events(stream(server, {"text_input": "hey", "count": 4}))
    assert [event["text_output"] for event in found] == ["hey"] * 4
    assert [event["index"] for event in found] == [0, 1, 2, 3]
    assert all(event["model_name"] == "generator_stream" for event in found)


def test_stream_is_an_event_stream(server):
    response = stream(server, {"text_input": "hey", "count": 1})
    assert response.headers["Content-Type"].startswith("text/event-stream")
    assert response.headers["Transfer-Encoding"] == "chunked"


def test_stream_without_responses_is_empty(server):
    response = stream(server, {"text_input": "hey", "count": 0})
    assert response.status == 200
    assert response.body == b""


def test_ordinary_model_streams_one_event(server):
    found = events(stream(server, {"text_input": "hey"}, model="generator"))
    assert [event["text_output"] for event in found] == ["hey"]


def test_error_before_the_first_event_is_an_error_of_http(server):
    response = stream(server, {"text_input": "FAIL"}, model="generator")
    assert "asked to fail" in response.body.decode()
    assert response.status >= 400 or response.body.startswith(b"data: ")


def test_error_in_the_stream_is_an_event(server):
    response = stream(server, {"text_input": "FAIL:1", "count": 3})
    found = events(response)
    assert "failed at 1" in json.dumps(found[1])
    assert "error" in found[1]
    assert found[0]["index"] == 0


def test_invalid_stream_request_is_refused(server):
    refused(stream(server, {}), 400)
    refused(stream(server, b"{"))


def test_events_come_as_soon_as_they_are_sent(launch_once):
    import http.client
    import time

    code = """
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for index in range(3):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor(
                    "index", np.array([index], np.int32))]))
                time.sleep(0.4)
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
    server = launch_once(
        [
            Model(
                "ticking",
                "generator_stream",
                config="""
backend: "python"
max_batch_size: 0
model_transaction_policy { decoupled: true }
input [ { name: "text_input" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "index" data_type: TYPE_INT32 dims: [ 1 ] } ]
""",
                files={"1/model.py": code},
            )
        ]
    )
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=20)
    connection.request("POST", "/v2/models/ticking/generate_stream", '{"text_input":"x"}')
    start = time.monotonic()
    response = connection.getresponse()
    assert b'"index":0' in response.read1()
    assert time.monotonic() - start < 1
    assert response.read().count(b"data: ") == 2
    assert time.monotonic() - start > 0.7
    connection.close()


def test_get_is_not_allowed(server):
    assert server.get("/v2/models/generator/generate").status == 405
    assert server.get("/v2/models/generator/generate_stream").status == 405


def test_numeric_inputs_are_understood(server):
    found = events(stream(server, {"text_input": "n", "count": [2]}))
    assert len(found) == 2


def test_many_streams_at_a_time_do_not_mix(server):
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda number: events(stream(server, {"text_input": f"t{number}", "count": 5})),
                range(24),
            )
        )
    for number, found in enumerate(answers):
        assert [event["text_output"] for event in found] == [f"t{number}"] * 5
        assert [event["index"] for event in found] == list(range(5))
