"""Both protocols write the same lines, on each path and with each engine."""

import json

import grpc
import pytest
import tritonclient.grpc.service_pb2 as pb
from weaknesses.conftest import LANES, Served, document, message

from frontends.http.access_log import MOST_SCANNED, named_id
from frontends.shared.access.limits import Limits
from frontends.shared.access.tokens import line_of
from frontends.shared.context import context_of

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@pytest.fixture(params=LANES)
def served(request, tmp_path):
    found = Served(tmp_path, request.param, {"access_log": str(tmp_path / "access.log")})
    found.lanes = request.param
    found.path = tmp_path / "access.log"
    yield found
    found.close()


def lines(served):
    """All lines so far, without times and ports."""
    served.call(context_of(served.server).access_log.close)
    found = [json.loads(line) for line in served.path.read_text().splitlines()]
    for line in found:
        assert line.pop("time") and line.pop("duration_us") >= 0
        host, _, port = line.pop("client").rpartition(":")
        assert host == "127.0.0.1" and port.isdigit()
    return found


def test_requests_over_http(served):
    body = document(1.0, id="mine")
    served.infer(body, headers={"traceparent": PARENT})
    served.ask("POST", "/v2/models/echo/versions/1/infer", body)
    served.infer(body, "absent")
    served.infer(b"{")
    served.ask("GET", "/v2/health/live?token=secret")
    served.ask("POST", "/v2/models/echo/generate", {"x": [1.0], "id": "theirs"})

    size = len(json.dumps(body))
    path = "/v2/models/echo/infer"
    shared = {"protocol": "http", "method": "POST"}
    found = lines(served)
    answers = [line.pop("bytes_out") for line in found]
    assert found == [
        {
            **shared,
            "path": path,
            "model": "echo",
            "id": "mine",
            "trace_id": TRACE,
            "status": 200,
            "bytes_in": size,
        },
        {
            **shared,
            "path": "/v2/models/echo/versions/1/infer",
            "model": "echo",
            "version": "1",
            "id": "mine",
            "status": 200,
            "bytes_in": size,
        },
        {
            **shared,
            "path": "/v2/models/absent/infer",
            "model": "absent",
            "id": "mine",
            "status": 404,
            "bytes_in": size,
        },
        {**shared, "path": path, "model": "echo", "status": 400, "bytes_in": 1},
        {**shared, "method": "GET", "path": "/v2/health/live", "status": 200, "bytes_in": 0},
        {
            **shared,
            "path": "/v2/models/echo/generate",
            "model": "echo",
            "id": "theirs",
            "status": 200,
            "bytes_in": 28,
        },
    ]
    assert answers[0] == len(
        '{"id":"mine","model_name":"echo","model_version":"1","outputs":[{"name":"y","datatype":"FP32",'
        '"shape":[1],"data":[1.0]}]}'
    )
    assert answers[4] == 0


def test_a_model_that_is_loaded_and_unloaded_has_its_plain_name(tmp_path):
    served = Served(
        tmp_path,
        next(iter(LANES)),
        {"access_log": str(tmp_path / "access.log"), "model_control_mode": "explicit"},
    )
    served.path = tmp_path / "access.log"
    try:
        for act in ("load", "unload"):
            served.ask("POST", f"/v2/repository/models/%65cho/{act}", {})
        found = lines(served)
    finally:
        served.close()

    assert [(line["model"], line["status"]) for line in found] == [("echo", 200)] * 2
    assert found[0]["path"] == "/v2/repository/models/%65cho/load"


def test_invalid_http_and_disconnects_have_lines(served):
    served.send(b"NONSENSE\r\n\r\n")
    text = json.dumps(document(1.0)).encode()
    own = served.open(
        b"POST /v2/models/gated/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(text)
        + text
    )
    served.backend.running.wait(20)
    own.close()
    while (
        len(context_of(served.server).access_log._waiting)
        + len(served.path.read_text().splitlines())
        < 2
    ):
        pass

    assert [line["status"] for line in lines(served)] == [400, 499]


@pytest.fixture(params=LANES)
def guarded(request, tmp_path):
    """A server that knows callers: `conc` may infer once, `look` may only read."""
    tokens = tmp_path / "tokens"
    once = Limits(rate=0.001, burst=1)
    tokens.write_text(
        "\n".join([line_of("conc", ["infer"], "conc", once), line_of("look", ["read"], "look")])
    )
    options = {"access_log": str(tmp_path / "access.log"), "auth_tokens": str(tokens)}
    found = Served(tmp_path, request.param, options)
    found.path = tmp_path / "access.log"
    yield found
    found.close()


def told(line):
    names = ("caller", "model", "version", "id", "status")
    return tuple(line.get(name) for name in names)


def test_a_refusal_over_http_has_the_name_of_its_caller_and_the_model_of_the_path(guarded):
    path = "/v2/models/echo/versions/1/infer"
    for token, model in (("conc", "absent"), ("conc", "echo"), ("look", "echo"), ("bad", "echo")):
        headers = {"Authorization": f"Bearer {token}"}
        guarded.ask("POST", path.replace("echo", model), document(1.0, id="mine"), headers)
    guarded.ask("POST", path, document(1.0, id="mine"))

    assert [told(line) for line in lines(guarded)] == [
        ("conc", "absent", "1", "mine", 404),
        ("conc", "echo", "1", None, 429),
        ("look", "echo", "1", None, 403),
        (None, "echo", "1", None, 401),
        (None, "echo", "1", None, 401),
    ]


def test_a_refusal_over_grpc_has_the_name_of_its_caller(guarded):
    for token in ("conc", "conc", "look", "bad"):
        with pytest.raises(grpc.RpcError):
            guarded.stub.ModelInfer(
                message(1.0, model="absent", id="mine"),
                metadata=[("authorization", f"Bearer {token}")],
                timeout=30,
            )

    found = lines(guarded)
    assert [(line.get("caller"), line["status"]) for line in found] == [
        ("conc", grpc.StatusCode.NOT_FOUND.value[0]),
        ("conc", grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]),
        ("look", grpc.StatusCode.PERMISSION_DENIED.value[0]),
        (None, grpc.StatusCode.UNAUTHENTICATED.value[0]),
    ]
    assert (found[0]["model"], found[0]["id"]) == ("absent", "mine")


def test_refusals_within_a_grpc_stream_have_the_name_of_its_caller(guarded):
    requests = [message(1.0, model="absent", id="a"), message(1.0, id="b")]
    with pytest.raises(grpc.RpcError):
        list(
            guarded.stub.ModelStreamInfer(
                iter(requests), metadata=[("authorization", "Bearer conc")], timeout=30
            )
        )

    found = lines(guarded)
    assert [(line.get("id"), line["status"]) for line in found] == [
        ("a", grpc.StatusCode.NOT_FOUND.value[0]),
        (None, grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]),
    ]
    assert {line["caller"] for line in found} == {"conc"}


@pytest.mark.parametrize(
    ("body", "id"),
    [
        (b'{"id":"a"}', "a"),
        (b' { "inputs" : [ {"id": "other"} ] , "id" : "\\u00e9\\n" }', "\u00e9\n"),
        (b'{"id":"a","inputs":[' + b"1," * 10_000, "a"),
        (b'{"inputs":[' + b"1," * MOST_SCANNED + b'1],"id":"late"}', ""),
        (b'{"id":7}', ""),
        (b'{"id"', ""),
        (b'{"x" "id":"a"}', ""),
        (b'["id","a"]', ""),
        (b'{"x":' + b"[" * 4000, ""),
        (b"\x1f\x8b\xff", ""),
        (b"", ""),
    ],
)
def test_the_id_at_the_start_of_a_body_that_is_not_read(body, id):
    assert named_id(body) == id
    assert named_id(memoryview(body)) == id


def test_an_answer_in_pieces_is_counted(served):
    answer = served.ask("POST", "/v2/models/many/generate_stream", {"x": [1.0, 2.0, 3.0]})

    (line,) = lines(served)

    assert (line["status"], line["model"]) == (200, "many")
    assert line["bytes_out"] >= len(answer.body) > 0


def test_calls_over_grpc(served):
    wanted = message(1.0, id="mine")
    served.stub.ModelInfer(wanted, metadata=[("traceparent", PARENT)], timeout=30)
    served.refused("ModelInfer", message(1.0, model="absent", id="theirs"))
    served.stub.ServerLive(pb.ServerLiveRequest(), timeout=30)
    served.stub.ModelReady(pb.ModelReadyRequest(name="echo", version="1"), timeout=30)

    prefix = "/inference.GRPCInferenceService/"
    found = lines(served)
    assert found[0].pop("bytes_out") > 0
    assert [line.pop("bytes_out") for line in found[2:]] == [2, 2]
    assert found == [
        {
            "protocol": "grpc",
            "path": prefix + "ModelInfer",
            "model": "echo",
            "id": "mine",
            "trace_id": TRACE,
            "status": 0,
            "bytes_in": wanted.ByteSize(),
        },
        {
            "protocol": "grpc",
            "path": prefix + "ModelInfer",
            "model": "absent",
            "id": "theirs",
            "status": grpc.StatusCode.NOT_FOUND.value[0],
            "bytes_in": message(1.0, model="absent", id="theirs").ByteSize(),
            "bytes_out": 0,
        },
        {"protocol": "grpc", "path": prefix + "ServerLive", "status": 0, "bytes_in": 0},
        {
            "protocol": "grpc",
            "path": prefix + "ModelReady",
            "model": "echo",
            "version": "1",
            "status": 0,
            "bytes_in": pb.ModelReadyRequest(name="echo", version="1").ByteSize(),
        },
    ]


def test_a_stream_has_a_line_for_each_request_and_one_for_itself(served):
    requests = [message(1.0, 2.0, model="many", id="a"), message(1.0, model="absent", id="b")]

    answers = list(served.stub.ModelStreamInfer(iter(requests), timeout=30))

    found = {line.get("id", ""): line for line in lines(served)}
    assert set(found) == {"a", "b", ""}
    assert (found["a"]["status"], found["b"]["status"], found[""]["status"]) == (0, 5, 0)
    assert found["a"]["bytes_in"] == requests[0].ByteSize()
    assert found[""]["bytes_in"] == sum(each.ByteSize() for each in requests)
    assert found[""]["bytes_out"] == sum(each.ByteSize() for each in answers)
    assert 0 < found["a"]["bytes_out"] < found[""]["bytes_out"]


def test_the_fast_path_is_used_with_an_access_log(served, monkeypatch):
    asked = []
    monkeypatch.setattr(
        type(served.http), "_answer", lambda self, request: asked.append(request) or 1 / 0
    )

    if served.lanes == "fast":
        assert served.infer(document(1.0)).status == 200
    assert not asked
