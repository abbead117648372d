"""The routes of captures: what was captured, and replays to the own server."""

import asyncio
import json
import socket
import threading
import time
import urllib.request
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from core_capture.http.replaying import ReplayRequest, own_senders
from core_capture.records.reader import CaptureReader
from core_capture.replay.compare import Comparison
from core_capture.replay.run import Replay

from core.errors import CoreError
from core.options import Options
from frontends.grpc.options import GrpcOptions
from frontends.http.options import HttpOptions

from .conftest import message


def free_ports():
    """Ports for Server.serve that its options name."""
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return {"http_port": one.getsockname()[1], "grpc_port": other.getsockname()[1]}


def get(client, path, token=""):
    """Return (status, JSON)."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://{client.url}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]


def events(body):
    """Return the (name, JSON) of a response of events."""
    blocks = [block.split("\ndata: ") for block in body.decode().split("\n\n") if block]
    return [(name.removeprefix("event: "), json.loads(data)) for name, data in blocks]


def replayed(client, document, headers=None):
    """Return the report of a replay of the capture without a name."""
    code, body = client.post("/v2/captures/./replay", document, headers)
    assert code == 200, body
    found = events(body)
    assert {name for name, _ in found[:-1]} <= {"progress"}
    assert found[-1][0] == "report", found[-1]
    return found[-1][1]


def test_a_capture_is_listed_with_its_requests(capture):
    client = capture(capture_answers=True)
    client.infer(1.0, 2.0, headers={"X-Team": "blue"})
    client.infer(-1.0)
    client.infer(3.0, model="absent")
    client.records(3)

    code, listed = get(client, "/v2/captures")
    _, found = get(client, "/v2/captures/./records")
    _, failed = get(client, "/v2/captures/./records?failed=true&model=dou*")

    assert (code, listed["folder"]) == (200, str(client.folder))
    (only,) = listed["captures"]
    assert (only["name"], only["files"], only["bytes"] > 0) == (".", 1, True)
    assert listed["processes"][0]["counts"]["written"] == 3
    assert [each["model"] for each in found["records"]] == ["absent", "double", "double"]
    assert (found["count"], found["failed"], found["bytes_left_out"]) == (3, 2, 0)
    assert found["models"] == {"double": 2, "absent": 1}
    assert [each["id"] for each in failed["records"]] == [found["records"][1]["id"]]


def test_a_request_in_full_has_its_tensors_and_its_answer(capture):
    client = capture(capture_answers=True)
    client.infer(1.0, 2.5, headers={"X-Team": "blue", "Cookie": "secret"})
    client.post("/v2/models/words/generate", {"text_input": "one"})
    client.records(2)
    words, double = get(client, "/v2/captures/./records")[1]["records"]

    _, found = get(client, f"/v2/captures/./records/{quote(double['id'], safe='')}")
    _, generated = get(client, f"/v2/captures/./records/{words['id']}")

    assert "X-Team: blue" in found["head"] and "secret" not in found["head"]
    (tensor,) = found["request"]["messages"][0]["tensors"]
    assert tensor == {
        **{"name": "x", "datatype": "FP32", "shape": [2], "elsewhere": False},
        **{"values": ["1", "2.5"], "count": 2},
    }
    assert found["answer"]["messages"][0]["tensors"][0]["values"] == ["2", "5"]
    assert json.loads(generated["request"]["text"]) == {"text_input": "one"}


@pytest.mark.parametrize(
    "path,code",
    [
        ("absent/records", 404),
        ("../records", 404),
        ("%2E%2E/records", 404),
        ("a%2Fb/records", 404),
        ("a" * 300 + "/records", 404),
        ("a%00/records", 404),
        ("./records/a%00.corecap:1", 404),
        ("./records/" + "a" * 300 + ".corecap:1", 404),
        ("./records/absent.corecap:15", 404),
        ("./records/..%2Fsecret.corecap:15", 404),
        ("./records/secret.txt:15", 404),
        ("./records/x.corecap", 404),
        ("./records/x.corecap:-1", 404),
        ("./records?limit=0", 400),
        ("./records?more=1", 400),
    ],
)
def test_other_files_are_not_read(capture, tmp_path, path, code):
    client = capture()
    (tmp_path / "secret.corecap").write_bytes(b"core capture 1\n")
    (client.folder / "secret.txt").write_bytes(b"text")
    client.infer(1.0)
    client.records(1)

    assert get(client, f"/v2/captures/{path}")[0] == code


@pytest.mark.parametrize(
    "address,options,code",
    [
        ("127.0.0.1", {}, 200),
        ("0.0.0.0", {}, 403),
        ("0.0.0.0", {"limit_rate": 1000}, 403),
        ("0.0.0.0", {"http_restricted_api": {"metadata": ("k", "v")}}, 403),
        ("0.0.0.0", {"http_restricted_api": {"capture": ("authorization", "Bearer v")}}, 200),
    ],
)
def test_records_are_not_shown_to_unknown_callers_of_other_machines(
    capture, address, options, code
):
    client = capture(ports={"http_port": 0, "grpc_port": 0, "address": address}, **options)
    client.infer(1.0)
    client.records(1)
    record = next(client.folder.glob("*.corecap")).name + ":15"

    found = [
        get(client, f"/v2/captures/./{path}", "v") for path in ("records", f"records/{record}")
    ]
    if code == 403:
        found.append(client.post("/v2/captures/./replay", {}))

    assert {each[0] for each in found} == {code}
    if code == 403:
        assert "not shown; set --auth-tokens, --http-restricted-api=capture" in found[0][1]
    assert get(client, "/v2/captures", "v")[0] == 200


def test_a_long_capture_shows_its_end(capture, monkeypatch):
    monkeypatch.setattr("core_capture.http.routes._TAIL_BYTES", 1500)
    client = capture()
    for value in range(10):
        client.infer(float(value))
    client.records(10)

    _, found = get(client, "/v2/captures/./records")

    assert 0 < found["count"] < 4
    assert found["bytes_left_out"] > 0
    _, last = get(client, f"/v2/captures/./records/{found['records'][0]['id']}")
    assert last["request"]["messages"][0]["tensors"][0]["values"] == ["9"]


def test_a_replay_says_which_answers_differ(capture):
    state = {"factor": 2}
    client = capture(
        {"double": lambda x: {"y": x * state["factor"]}}, capture_answers=True, ports=free_ports()
    )
    client.infer(0.0)
    client.infer(1.0)
    client.stub.ModelInfer(message(1.5))
    client.records(3)
    same = replayed(client, {"speed": "max", "limit": 3})
    state["factor"] = 3

    found = replayed(client, {"speed": "max", "limit": 3})

    assert (same["equal"], same["differing"]) == (3, 0)
    assert (found["equal"], found["differing"]) == (1, 2)
    first = found["differences"][0]
    assert "output 'y' differs in 1 of 1 elements, by at most 1" in first["text"]
    _, record = get(client, f"/v2/captures/./records/{first['id']}")
    assert record["request"]["messages"][0]["tensors"][0]["values"] == ["1"]


def test_one_replay_at_a_time_and_it_ends_with_its_client(capture):
    begun, may_end = threading.Event(), threading.Event()
    state = {"waits": False}

    def double(x):
        if state["waits"]:
            begun.set()
            may_end.wait(20)
        return {"y": x * 2}

    client = capture({"double": double}, ports=free_ports())
    client.infer(1.0)
    client.records(1)
    state["waits"] = True
    request = urllib.request.Request(f"http://{client.url}/v2/captures/./replay", b"{}")
    with urllib.request.urlopen(request, timeout=20):
        assert begun.wait(20)
        code, body = client.post("/v2/captures/./replay", {})
    may_end.set()
    state["waits"] = False

    assert (code, b"a replay is running" in body) == (503, True)
    end = time.monotonic() + 20
    while client.post("/v2/captures/./replay", {"speed": "max", "limit": 1})[0] != 200:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_request_with_a_whole_address_is_replayed(capture):
    client = capture(capture_answers=True, ports=free_ports())
    body = b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}'
    head = b"POST http://a.example/v2/models/double/infer HTTP/1.1\r\nHost: a.example\r\n"
    host, _, port = client.url.partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as sent:
        sent.sendall(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body))
        assert b" 200 " in sent.recv(1000)
    client.records(1)

    assert replayed(client, {"speed": "max"})["equal"] == 1


def test_every_record_is_counted_and_read_on_another_thread(capture, monkeypatch):
    client = capture(capture_answers=True, ports=free_ports())
    for value in (1.0, 2.0):
        client.infer(value)
    client.records(2)
    read, judge, threads = CaptureReader.read, Comparison.difference, []

    def fail_once(place):
        threads.append(asyncio._get_running_loop() is not None)
        if len(threads) == 1:
            raise RuntimeError("no reader")
        return read(place)

    def difference(self, *more):
        threads.append(asyncio._get_running_loop() is not None)
        return judge(self, *more)

    monkeypatch.setattr(CaptureReader, "read", staticmethod(fail_once))
    monkeypatch.setattr(Comparison, "difference", difference)
    found = replayed(client, {"speed": "max"})

    assert (found["equal"], found["unanswered"]) == (1, 1)
    assert found["differences"][0]["text"] == "RuntimeError: no reader"
    assert threads == [False] * 3


def test_a_replay_that_breaks_ends_with_a_reason(capture, monkeypatch):
    async def breaks(replay):
        raise RuntimeError("broken")

    client = capture(ports=free_ports())
    client.infer(1.0)
    client.records(1)
    monkeypatch.setattr(Replay, "run", breaks)

    _, body = client.post("/v2/captures/./replay", {})

    assert events(body)[-1] == ("failed", {"error": "the replay failed: RuntimeError: broken"})


@pytest.mark.parametrize(
    "http,grpc,found",
    [
        ({}, {}, ["http", "grpc"]),
        ({"http_use_ssl": True}, {}, ["http", "grpc"]),
        ({}, {"grpc_use_ssl": True}, ["http"]),
        ({}, {"grpc_use_ssl_mutual": True}, ["http"]),
        ({}, {"grpc_address": "unix:/grpc"}, ["http"]),
        ({}, {"allow_grpc": False}, ["http"]),
    ],
)
def test_grpc_is_replayed_over_http_without_a_plain_port(http, grpc, found):
    options = Options.defaults(HttpOptions(**http), GrpcOptions(**grpc))

    senders, protocol = own_senders(SimpleNamespace(options=options), {})

    assert (list(senders), protocol) == (found, "" if "grpc" in found else "http")


def test_a_port_that_demands_certificates_of_clients_gets_no_replay_of_the_server():
    options = Options.defaults(
        HttpOptions(http_use_ssl=True, http_use_ssl_mutual=True), GrpcOptions()
    )

    with pytest.raises(CoreError, match="core replay with --ssl-https-client-certificate-file"):
        own_senders(SimpleNamespace(options=options), {})


def test_a_replay_has_the_header_of_a_restricted_api(capture):
    restricted = {each: ("x-team", "blue") for each in ("capture", "inference")}
    client = capture(http_restricted_api=restricted, ports=free_ports())
    client.infer(1.0, headers={"X-Team": "blue"})
    client.records(1)

    replayed(client, {"speed": "max"}, {"X-Team": "blue"})

    assert client.records(2)[1].status == 200


@pytest.mark.parametrize(
    "document,text",
    [
        ([], "is no JSON object"),
        ({"pace": 1}, "unknown member 'pace'"),
        ({"speed": 0}, "speed is 0; expected a factor above 0"),
        ({"speed": True}, "speed is True"),
        ({"models": "m"}, "models is 'm'; expected a list"),
        ({"limit": -1}, "limit is -1"),
        ({"compare": "all"}, "compare is 'all'"),
        ({"tolerance": "x"}, "tolerance is 'x'"),
    ],
)
def test_a_wrong_replay_has_an_answer(document, text):
    with pytest.raises(CoreError, match=text):
        ReplayRequest.of(document)


def test_captures_are_for_operators_and_a_replay_has_the_roles_of_its_caller(capture, tmp_path):
    from frontends.shared.access.tokens import line_of

    tokens = tmp_path / "tokens"
    roles = {"op": ["manage"], "look": ["read"], "anna": ["infer"], "both": ["infer", "manage"]}
    tokens.write_text("\n".join(line_of(name, each, name) for name, each in roles.items()))
    client = capture(capture_answers=True, auth_tokens=str(tokens), ports=free_ports())
    client.infer(1.0, headers={"Authorization": "Bearer anna"})
    client.records(1)

    codes = {name: get(client, "/v2/captures", name)[0] for name in roles}
    reports = {
        name: replayed(client, {"limit": 1}, {"Authorization": f"Bearer {name}"})
        for name in ("op", "both")
    }

    assert codes == {"op": 200, "look": 403, "anna": 403, "both": 200}
    assert reports["both"]["equal"] == 1
    assert "status 200, now 403" in reports["op"]["differences"][0]["text"]
