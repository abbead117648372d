"""The tokens of callers, over every protocol: their lines in the access log, and the limit of each caller."""

import json
import queue
import socket
import threading
import time

import grpc
import numpy as np
import pytest

from frontends.shared.access.limits import Limits
from frontends.shared.access.tokens import line_of

pytest.importorskip("backend_testing.letters")
triton = pytest.importorskip("tritonclient.grpc")

CHAT = "/v1/chat/completions"
PROMPT, GENERATED = "num_input_tokens", "num_output_tokens"
COUNTS = {PROMPT: ("UINT32", [1]), GENERATED: ("UINT32", [1])}
WHOLE = {"decoupled": False}


def text(*values):
    return np.array([value.encode() for value in values], object)


def numbers(prompt, tokens):
    return {PROMPT: np.array([prompt], np.uint32), GENERATED: np.array([tokens], np.uint32)}


def whole(text_input):
    """Report a prompt of 3 and a text of 4 tokens, always."""
    return {"text_output": text("whole"), **numbers(3, 4)}


def streamed(text_input):
    """Report a prompt of 5 tokens, and one token for each of three words."""
    for word in ("a ", "b ", "c"):
        yield {"text_output": text(word), **numbers(5, 1)}


class Flagged:
    """Reports tokens only if a flag asks for them, as models of Triton's vLLM backend do."""

    def __init__(self):
        self.seen = []

    def __call__(self, text_input, return_num_input_tokens=None, return_num_output_tokens=None):
        flags = (return_num_input_tokens, return_num_output_tokens)
        self.seen.append([None if each is None else bool(each[0]) for each in flags])
        counts = numbers(*(6 if flag is not None and flag[0] else 0 for flag in flags))
        return {"text_output": text("flagged"), **counts}


class Ports:
    """A server with an access log and two callers: `ann` has no limit, `bob` one of 100 tokens a minute."""

    def __init__(self, http, grpc, stop, log):
        self.http, self.grpc, self._stop, self._log = http, grpc, stop, log

    def ask(self, connect, path, body, caller="ann"):
        connection = connect(self.http).begin(path, body, {"X-Api-Key": caller * 8})
        answer = connection.getresponse()
        data = answer.read().decode()
        return answer.status, answer.headers, data

    def lines(self):
        """Return (path, prompt tokens, tokens) of each line, after the end of the server."""
        self._stop()
        found = [json.loads(each) for each in self._log.read_text().splitlines()]
        return [
            (each["path"].rpartition("/")[2], each.get("prompt_tokens"), each.get("tokens"))
            for each in found
        ]


@pytest.fixture
def flagged():
    return Flagged()


@pytest.fixture
def ports(open_server, letters, tmp_path, flagged):
    log, tokens = tmp_path / "usage.log", tmp_path / "tokens"
    lines = [line_of("ann", ["infer"], "ann" * 8)]
    lines.append(line_of("bob", ["infer"], "bob" * 8, Limits(tokens=100)))
    tokens.write_text("\n".join(lines) + "\n")
    server, port = open_server(
        access_log=str(log), auth_tokens=str(tokens), model_repository=[str(tmp_path)]
    )
    text_in = {"text_input": ("BYTES", [1])}
    out = {"text_output": ("BYTES", [1]), **COUNTS}
    server.bind("whole", whole, inputs=text_in, outputs=out)
    server.bind("streamed", streamed, inputs=text_in, outputs=out)
    flags = {f"return_{name}": ("BOOL", [1]) for name in COUNTS}
    server.bind("flagged", flagged, inputs={**text_in, **flags}, outputs=out)
    return Ports(port, server.serve(grpc_port=0)["grpc"], server.stop, log)


def sampling(**fields):
    return {"text_input": "hi", "sampling_parameters": json.dumps(fields)}


def grpc_input(value="x", name="text_input"):
    tensor = triton.InferInput(name, [1], "BYTES")
    tensor.set_data_from_numpy(np.array([value.encode()], object))
    return tensor


def headers(caller):
    return {"x-api-key": caller * 8}


@pytest.mark.parametrize(
    "path,body,expected",
    [
        ("/v2/models/letters/generate", sampling(max_tokens=7), (3, 7)),
        ("/v2/models/letters/generate_stream", {**sampling(max_tokens=7), "stream": True}, (3, 7)),
        ("/v2/models/whole/generate", {"text_input": "x"}, (3, 4)),
        ("/v2/models/streamed/generate_stream", {"text_input": "x"}, (5, 3)),
        ("/v2/models/flagged/generate", {"text_input": "x"}, (6, 6)),
        ("/v2/models/vectors/generate", {"text_input": "ab"}, (3, None)),
        (CHAT, {"model": "whole", "messages": [{"role": "user", "content": "x"}]}, (3, 4)),
    ],
)
def test_a_line_has_the_tokens_that_a_model_reports(ports, connect, path, body, expected):
    status, _, data = ports.ask(connect, path, body)

    assert status == 200, data
    assert ports.lines() == [(path.rpartition("/")[2], *expected)]


def infer_body(model_output):
    data = {"name": "text_input", "shape": [1], "datatype": "BYTES", "data": ["x"]}
    return {"inputs": [data], "outputs": [{"name": model_output}]}


@pytest.mark.parametrize("model,expected", [("whole", (3, 4)), ("flagged", (6, 6))])
def test_tokens_that_a_client_does_not_ask_for_are_counted_and_not_sent(
    ports, connect, model, expected
):
    status, _, data = ports.ask(connect, f"/v2/models/{model}/infer", infer_body("text_output"))

    assert status == 200, data
    assert [each["name"] for each in json.loads(data)["outputs"]] == ["text_output"]
    assert ports.lines() == [("infer", *expected)]


def test_the_flags_of_a_client_stay_as_they_are(ports, connect, flagged):
    body = {"text_input": "x", "return_num_output_tokens": True}
    _, _, data = ports.ask(connect, "/v2/models/flagged/generate", body)

    assert flagged.seen == [[True, True]]
    assert json.loads(data)[GENERATED] == 6 and PROMPT not in json.loads(data)


def test_a_model_without_tokens_has_none_in_its_line(ports, connect):
    ports.ask(connect, "/v2/models/words/generate_stream", {"text_input": "a b"})
    assert ports.lines() == [("generate_stream", None, None)]


def test_calls_of_grpc_have_their_tokens(ports):
    with triton.InferenceServerClient(f"127.0.0.1:{ports.grpc}") as client:
        found = client.infer("whole", [grpc_input()], headers=headers("ann"))
        assert found.as_numpy("text_output")[0] == b"whole"
        answers = queue.Queue()
        client.start_stream(lambda result, error: answers.put(error), headers=headers("ann"))
        fields = grpc_input(json.dumps({"max_tokens": 4}), "sampling_parameters")
        client.async_stream_infer("letters", [grpc_input("hi"), fields])
        assert answers.get(timeout=20) is None
        client.async_stream_infer("streamed", [grpc_input()])
        assert [answers.get(timeout=20) for _ in range(3)] == [None] * 3
        client.stop_stream()

    assert ports.lines() == [
        ("ModelInfer", 3, 4),
        ("ModelStreamInfer", 3, 4),
        ("ModelStreamInfer", 5, 3),
        ("ModelStreamInfer", None, None),  # the stream itself
    ]


@pytest.mark.parametrize(
    "path,body",
    [
        ("/v2/models/forever/generate", {"text_input": "x"}),
        ("/v2/models/forever/generate_stream", {"text_input": "x", "stream": True}),
        ("/v1/completions", {"model": "forever", "prompt": "x", "max_tokens": 10**8}),
        (
            "/v1/completions",
            {"model": "forever", "prompt": "x", "max_tokens": 10**8, "stream": True},
        ),
    ],
)
def test_a_client_that_disconnects_is_charged_with_what_was_generated(ports, connect, path, body):
    connection = connect(ports.http).begin(path, body, {"X-Api-Key": "ann" * 8})
    if body.get("stream"):
        connection.getresponse().read(200)
    else:
        time.sleep(0.2)
    connection.sock.shutdown(socket.SHUT_RDWR)
    time.sleep(0.5)

    ((_, _, tokens),) = ports.lines()
    assert tokens > 10


def test_a_stream_of_grpc_that_is_broken_off_has_what_was_generated(ports):
    with triton.InferenceServerClient(f"127.0.0.1:{ports.grpc}") as client:
        begun = threading.Event()
        client.start_stream(lambda result, error: begun.set(), headers=headers("ann"))
        flag = triton.InferInput("stream", [1], "BOOL")
        flag.set_data_from_numpy(np.array([True]))
        client.async_stream_infer("forever", [grpc_input(), flag])
        assert begun.wait(20)
        client.stop_stream(cancel_requests=True)

    assert sum(tokens or 0 for _, _, tokens in ports.lines()) > 0


def spend(ports, connect, tokens=120):
    """Have bob use more than the tokens of a minute."""
    status, _, data = ports.ask(
        connect, "/v2/models/letters/generate", sampling(max_tokens=tokens), "bob"
    )
    assert status == 200, data


LIMIT = "caller 'bob' has used up its limit of 100 tokens a minute; it has tokens again in "


@pytest.mark.parametrize(
    "path,body",
    [
        (CHAT, {"model": "letters", "messages": [{"role": "user", "content": "x"}]}),
        ("/v1/completions", {"model": "letters", "prompt": "x", "stream": True}),
        ("/v1/messages", {"model": "letters", "max_tokens": 3, "messages": [
            {"role": "user", "content": "x"}]}),
        ("/v1/embeddings", {"model": "vectors", "input": "x"}),
        ("/v2/models/letters/generate", {"text_input": "x"}),
        ("/v2/models/letters/generate_stream", {"text_input": "x", "stream": True}),
        ("/v2/models/whole/infer", infer_body("text_output")),
    ],
)  # fmt: skip
def test_a_caller_without_tokens_is_refused_with_the_limit_and_the_wait(ports, connect, path, body):
    spend(ports, connect)

    status, fields, data = ports.ask(connect, path, body, "bob")

    assert status == 429
    assert LIMIT in data
    assert 5 <= int(fields["Retry-After"]) <= 20
    assert ports.ask(connect, path, body, "ann")[0] == 200


def test_a_caller_without_tokens_may_call_models_that_report_none(ports, connect):
    spend(ports, connect)

    assert (
        ports.ask(connect, "/v2/models/words/generate_stream", {"text_input": "a"}, "bob")[0] == 200
    )
    assert ports.ask(connect, "/v1/models", None, "bob")[0] == 200


def test_a_refused_request_does_not_reach_the_model_and_costs_nothing(ports, connect, flagged):
    spend(ports, connect)
    for _ in range(3):
        assert (
            ports.ask(connect, "/v2/models/flagged/generate", {"text_input": "x"}, "bob")[0] == 429
        )

    assert flagged.seen == []
    assert ports.lines()[1:] == [("generate", None, None)] * 3


def test_grpc_refuses_with_its_code(ports, connect):
    spend(ports, connect)
    with triton.InferenceServerClient(f"127.0.0.1:{ports.grpc}") as client:
        with pytest.raises(triton.InferenceServerException, match=LIMIT) as caught:
            client.infer("whole", [grpc_input()], headers=headers("bob"))
        assert caught.value.status() == str(grpc.StatusCode.RESOURCE_EXHAUSTED)
        answers = queue.Queue()
        client.start_stream(lambda result, error: answers.put(error), headers=headers("bob"))
        client.async_stream_infer("streamed", [grpc_input()])
        assert LIMIT in str(answers.get(timeout=20))
        client.stop_stream()


def test_calls_of_grpc_cost_tokens(ports):
    with triton.InferenceServerClient(f"127.0.0.1:{ports.grpc}") as client:
        for _ in range(15):  # 7 tokens each
            client.infer("whole", [grpc_input()], headers=headers("bob"))
        with pytest.raises(triton.InferenceServerException, match=LIMIT):
            client.infer("whole", [grpc_input()], headers=headers("bob"))


def test_a_client_that_disconnects_has_still_paid(ports, connect):
    connection = connect(ports.http).begin(
        "/v2/models/forever/generate_stream",
        {"text_input": "x", "stream": True},
        {"X-Api-Key": "bob" * 8},
    )
    connection.getresponse().read(20_000)
    connection.sock.shutdown(socket.SHUT_RDWR)
    time.sleep(0.5)

    assert ports.ask(connect, CHAT, {"model": "letters", "messages": [
        {"role": "user", "content": "x"}]}, "bob")[0] == 429  # fmt: skip


def test_several_choices_count_their_prompt_once(ports, connect):
    body = {"model": "letters", "prompt": ["a", "bc"], "n": 3, "max_tokens": 2}
    status, _, data = ports.ask(connect, "/v1/completions", body)

    assert status == 200
    assert json.loads(data)["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 12,
        "total_tokens": 17,
    }
    assert ports.lines() == [("completions", 5, 12)]
