"""Models, and what holds for all of these routes: options, roles, restrictions, disconnects, the log."""

import json

import pytest
from frontend_openai import generation

from frontends.shared.access.tokens import line_of

CHAT = "/v1/chat/completions"
HELLO = {"model": "words", "messages": [{"role": "user", "content": "hello"}]}


def user(text):
    return [{"role": "user", "content": text}]


def test_models_are_listed_with_their_adapters(client):
    status, found = client.ask("/v1/models")

    assert status == 200 and found["object"] == "list"
    names = ["broken", "cut", "endless", "engine", "engine:pirate", "vllm", "words"]
    assert [each["id"] for each in found["data"]] == names
    assert client.ask("/v1/models/words")[1] == found["data"][-1]
    assert client.ask("/v1/models/engine:pirate")[1]["parent"] == "engine"
    status, found = client.ask("/v1/models/nothing")
    assert (status, found["error"]["code"]) == (404, "model_not_found")


def test_an_adapter_is_named_behind_its_model(client, models):
    status, found = client.ask(CHAT, {**HELLO, "model": "engine:pirate"})

    assert (status, found["model"]) == (200, "engine:pirate")
    assert json.loads(models.seen[0]["sampling_parameters"][0]) == {"lora_name": "pirate"}
    assert client.ask(CHAT, {**HELLO, "model": "engine:nobody"})[0] == 404


MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            text = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()[0]
            for word in text.split():
                tensor = pb_utils.Tensor("text_output", np.array([word], np.object_))
                sender.send(pb_utils.InferenceResponse([tensor]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
CONFIG = """
backend: "python"
model_transaction_policy { decoupled: true }
input [ { name: "text_input" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "text_output" data_type: TYPE_STRING dims: [ 1 ] } ]
"""


@pytest.fixture
def repository(tmp_path):
    pytest.importorskip("backend_python")
    (tmp_path / "decoupled" / "1").mkdir(parents=True)
    (tmp_path / "decoupled" / "1" / "model.py").write_text(MODEL)
    (tmp_path / "decoupled" / "config.pbtxt").write_text(CONFIG)
    return str(tmp_path)


def test_a_decoupled_python_model_is_loaded_answers_and_is_unloaded(
    open_server, repository, connect
):
    _, port = open_server(model_repository=[repository], model_control_mode="explicit")
    client = connect(port)
    body = {**HELLO, "model": "decoupled"}

    assert client.ask(CHAT, body)[0] == 404
    status, found = client.ask("/v1/models/decoupled/load", {})
    assert (status, found["id"]) == (200, "decoupled")
    assert client.ask(CHAT, body)[1]["choices"][0]["message"]["content"] == "hello"
    chunks = client.chunks(CHAT, body)
    assert chunks[1]["choices"][0]["delta"]["content"] == "hello"
    assert client.ask("/v1/models/decoupled/unload", {})[1]["status"] == "success"
    assert client.ask(CHAT, body)[0] in (400, 404, 503)


def test_loading_needs_the_control_mode_explicit(client):
    status, found = client.ask("/v1/models/words/load", {})

    assert status == 503
    assert found["error"]["type"] == "server_error"


def test_a_client_that_goes_cancels_the_model(open_server, models, connect):
    port = open_server()[1]
    connection = connect(port).begin(CHAT, {**HELLO, "model": "endless", "stream": True})
    answer = connection.getresponse()
    assert answer.read(100)

    answer.close()
    connection.close()

    assert models.ended.wait(10)


def test_an_unknown_path_and_method_have_errors_in_the_form_of_these_routes(client):
    for method, path, wanted in (("GET", "/v1/nothing", 404), ("GET", CHAT, 405)):
        status, found = client.ask(path, method=method)
        assert (status, found["error"]["type"] != "") == (wanted, True)
    assert client.ask("/v2/nothing")[1] == {"error": "Not Found"}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_an_error_about_a_very_long_name_is_short(client, path):
    body = {"model": "engine", "max_tokens": 1, "x" * 200_000: 1}
    body |= (
        {"input": "x"}
        if path == "/v1/responses"
        else {"messages": [{"role": "user", "content": "x"}]}
    )

    status, found = client.ask(path, body)

    assert status == 400
    assert len(json.dumps(found)) < 67_000
    assert len(found["error"].get("param") or "") <= 301


def test_they_can_be_turned_off(open_server, connect):
    client = connect(open_server(allow_openai=False)[1])

    assert client.ask(CHAT, HELLO) == (404, {"error": "Not Found"})


def test_restricted_apis_need_their_header(open_server, connect):
    rules = {"inference": ("key", "secret")}
    client = connect(open_server(openai_restricted_api=rules)[1])

    status, found = client.ask(CHAT, HELLO)
    assert (status, found["error"]["code"]) == (401, "invalid_auth")
    assert client.ask(CHAT, HELLO, {"key": "secret"})[0] == 200
    assert client.ask("/v1/models")[0] == 200


def test_the_restrictions_of_the_http_port_hold_too(open_server, connect):
    client = connect(open_server(http_restricted_api={"inference": ("key", "secret")})[1])

    status, found = client.ask(CHAT, HELLO)
    assert (status, found["error"]["type"]) == (403, "permission_error")
    assert client.ask(CHAT, HELLO, {"key": "secret"})[0] == 200


def test_roles_hold(open_server, tmp_path, connect):
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(line_of(name, [role], token) + "\n" for name, token, role in ROLES))
    client = connect(open_server(auth_tokens=str(tokens))[1])

    def status(path, token, body=None):
        return client.ask(path, body, {"Authorization": f"Bearer {token}"})[0]

    found = client.ask(CHAT, HELLO)
    assert (found[0], found[1]["error"]["type"]) == (401, "authentication_error")
    assert status(CHAT, "a" * 32, HELLO) == 200
    assert status(CHAT, "b" * 32, HELLO) == 403
    assert status("/v1/models", "a" * 32) == 200
    assert status("/v1/models/words/load", "a" * 32, {}) == 403


ROLES = (("ann", "a" * 32, "infer"), ("bob", "b" * 32, "read"))


def test_the_access_log_names_the_model(open_server, tmp_path, connect):
    file = tmp_path / "access.log"
    server, port = open_server(access_log=str(file))
    client = connect(port)
    client.ask(CHAT, HELLO, {"X-Request-Id": "r1"})
    client.chunks(CHAT, HELLO)
    server.stop()

    lines = [json.loads(each) for each in file.read_text().splitlines()]
    assert [(each["model"], each["status"]) for each in lines] == [("words", 200)] * 2
    assert lines[0]["id"] == "r1" and lines[1]["bytes_out"] > 100


def test_the_access_log_has_the_tokens_of_each_caller(open_server, tmp_path, letters, connect):
    file, tokens = tmp_path / "usage.log", tmp_path / "tokens"
    tokens.write_text(line_of("ann", ["infer"], "a" * 32) + "\n")
    server, port = open_server(
        access_log=str(file), auth_tokens=str(tokens), model_repository=[str(tmp_path)]
    )
    client = connect(port)
    chat = {"model": "letters", "messages": user("hi"), "max_completion_tokens": 5}
    calls = (
        (CHAT, {**chat, "stream": True}),
        ("/v1/completions", {"model": "letters", "prompt": ["a", "bc"], "n": 2, "max_tokens": 3}),
        ("/v1/messages", {"model": "letters", "messages": user("hi"), "max_tokens": 4}),
        ("/v1/responses", {"model": "letters", "input": "hi", "max_output_tokens": 4}),
        ("/v1/embeddings", {"model": "vectors", "input": "ab"}),
        ("/v1/rerank", {"model": "scores", "query": "a", "documents": ["b"]}),
        (CHAT, {**HELLO}),
    )
    for path, body in calls:
        answer = client.begin(path, body, {"Authorization": f"Bearer {'a' * 32}"}).getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
    server.stop()

    lines = [json.loads(each) for each in file.read_text().splitlines()]
    found = [(each.get("prompt_tokens"), each.get("tokens")) for each in lines]
    assert {each["caller"] for each in lines} == {"ann"}
    prompt = found[0][0]
    assert prompt > 3
    assert found == [
        *((prompt, 5), (5, 12), (prompt, 4), (prompt, 4)),
        *((3, None), (2, None), (None, None)),
    ]


def test_a_deadline_ends_a_text(client, models):
    models.gate.clear()

    status, found = client.ask(CHAT, HELLO, {"grpc-timeout": "200m"})
    assert (status, found["error"]["message"]) == (504, "Deadline Exceeded")

    models.gate.set()
    assert models.ended.wait(10)
    models.gate.clear()
    answer = client.begin(CHAT, {**HELLO, "stream": True}, {"grpc-timeout": "900m"}).getresponse()
    *_, last, end = answer.read().decode().split("\n\n")
    assert (answer.status, end) == (200, "")
    assert json.loads(last[6:])["error"]["message"] == "Deadline Exceeded"


def test_a_whole_answer_has_a_bound(client, models, monkeypatch):
    monkeypatch.setattr(generation, "MOST_TEXT", 1000)

    status, found = client.ask(CHAT, {**HELLO, "model": "endless"})

    assert status == 503 and "1000 characters" in found["error"]["message"]
    assert models.ended.wait(10)


def test_they_are_described(client):
    paths = client.ask("/openapi.json")[1]["paths"]

    assert paths["/v1/chat/completions"]["post"]["summary"].startswith("Generate the answer")
    assert "/v1/models/{model}" in paths


def test_a_port_of_their_own_has_these_routes_alone(open_server, connect):
    from frontend_openai.frontend import OpenAIFrontend

    server, _ = open_server(openai_port=20290, http_address="127.0.0.1")

    async def started():
        frontend = OpenAIFrontend(server._inner)
        assert frontend.enabled
        await frontend.start()
        return frontend

    frontend = server._thread.run(started())
    client = connect(frontend.port)
    try:
        assert client.ask(CHAT, HELLO)[0] == 200
        assert client.ask("/v2/health/live")[0] == 404
    finally:
        server._thread.run(frontend.stop(5))


def test_a_model_without_text_is_refused_with_the_reason(open_server, connect):
    server, port = open_server()
    server.bind(
        "sum", lambda x: {"y": x}, inputs={"x": ("FP32", [1])}, outputs={"y": ("FP32", [1])}
    )
    client = connect(port)

    status, found = client.ask(CHAT, {**HELLO, "model": "sum"})

    assert status == 400
    assert "text_output" in found["error"]["message"]


def test_a_server_that_stops_ends_a_stream_with_an_error(open_server, models, connect):
    server, port = open_server()
    models.gate.clear()
    answer = connect(port).begin(CHAT, {**HELLO, "stream": True}).getresponse()
    begin = answer.read1()

    server.stop(0.5)

    *_, last, end = (begin + answer.read()).decode().split("\n\n")
    assert end == ""
    assert "error" in json.loads(last[6:])
