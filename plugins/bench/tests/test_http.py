"""The route that measures a model of the own server."""

import json
import socket
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from core_bench.http.own_address import server_flags
from core_bench.http.request import BenchRequest

import core
from core.errors import CoreError
from core.options import Options
from frontends.grpc.options import GrpcOptions
from frontends.http.options import HttpOptions

QUICK = {"loads": [1, 2], "rounds": 2, "round_s": 0.1}


@pytest.fixture(scope="module")
def url():
    """The address of a server with the models `double` and `broken`, on a port that its options name."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    four = {"inputs": {"x": ("FP32", [4])}, "outputs": {"y": ("FP32", [4])}}
    with core.Server() as server:
        server.bind("double", lambda x: 2 * x, **four)
        any_size = {"inputs": {"x": ("FP32", [-1])}, "outputs": {"y": ("FP32", [-1])}}
        server.bind("any", lambda x: 2 * x, **any_size)
        server.bind("broken", _broken, **four)
        server.serve(http_port=port)
        yield f"http://127.0.0.1:{port}"


def _broken(x):
    raise core.CoreError(core.Kind.UNAVAILABLE, "no more room")


def opened(url, model, document):
    body = json.dumps(document).encode()
    return urllib.request.urlopen(
        urllib.request.Request(f"{url}/v2/models/{model}/bench", body), timeout=60
    )


def events(url, model, document):
    """Return the (name, JSON) of the events of a measurement."""
    with opened(url, model, document) as answer:
        blocks = [each.split("\ndata: ") for each in answer.read().decode().split("\n\n") if each]
    return [(name.removeprefix("event: "), json.loads(data)) for name, data in blocks]


def refusal(url, model, document):
    """Return (status, text) of a measurement that does not begin."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        opened(url, model, document).close()
    return caught.value.code, json.loads(caught.value.read())["error"]


def test_a_measurement_tells_each_load_and_ends_with_a_report(url):
    found = events(url, "double", QUICK)

    names = [name for name, _ in found]
    assert names[-1] == "report", found[-1]
    assert {"progress", "cases"} <= set(names)
    first = found[names.index("cases")][1]["cases"]
    assert len(first) == 1  # the others have no round yet
    report = found[-1][1]
    assert [each["load"] for each in report["cases"]] == [1, 2]
    for each in report["cases"]:
        assert each["answers_per_s"]["median"] > 10
        assert 0 < each["latency_s"]["p50"]["median"] < 1
        assert each["errors"] == {} and "rounds" not in each


def test_an_input_of_any_size_has_a_shape(url):
    quick = {**QUICK, "loads": [1], "rounds": 1}

    name, found = events(url, "any", quick)[-1]
    assert name == "failed" and "input 'x' has dims [-1] of any size" in found["error"]
    name, found = events(url, "any", {**quick, "shapes": {"x": [3]}})[-1]
    assert name == "report" and found["cases"][0]["errors"] == {}


def test_a_model_that_fails_is_not_measured(url):
    name, found = events(url, "broken", {**QUICK, "loads": [1], "rounds": 1})[-1]

    assert name == "failed"
    assert "no more room" in found["error"]


def test_one_measurement_at_a_time_and_it_ends_with_its_client(url):
    with opened(url, "double", {"loads": [1], "rounds": 10, "round_s": 5}) as answer:
        assert answer.readline().startswith(b"event: ")
        code, text = refusal(url, "double", QUICK)
    assert (code, text) == (503, "a measurement is running; wait for its end, or stop it")
    end = time.monotonic() + 20
    while True:
        try:
            assert events(url, "double", {**QUICK, "loads": [1]})[-1][0] == "report"
            return
        except urllib.error.HTTPError as error:
            assert error.code == 503 and time.monotonic() < end
            time.sleep(0.05)


def test_an_unknown_model_is_not_measured(url):
    assert refusal(url, "absent", {})[0] == 404


@pytest.mark.parametrize(
    "document,text",
    [
        ([], "is no JSON object"),
        ({"load": 1}, "unknown member 'load'; expected kind, loads"),
        ({"kind": "users"}, "kind is 'users'"),
        ({"kind": []}, "kind is \\[\\]; expected concurrency or rate"),
        ({"loads": [float("inf")]}, "loads has inf; expected concurrency above 0"),
        ({"loads": [float("nan")]}, "loads has nan"),
        ({"loads": []}, "loads is \\[\\]; expected a list of 1 to 16"),
        ({"loads": [1.5]}, "loads has 1.5; expected concurrency above 0, up to 512"),
        ({"loads": ["a"]}, "loads has 'a'"),
        ({"kind": "rate", "loads": [0]}, "loads has 0; expected rate"),
        ({"shapes": [3]}, "shapes is \\[3\\]; expected an object"),
        ({"shapes": {"x": 3}}, "shapes has 3 for 'x'; expected a list"),
        ({"shapes": {"x": [-1]}}, "shapes has \\[-1\\] for 'x'"),
        ({"shapes": {"x": [1.5]}}, "shapes has"),
        ({"shapes": {"x": [1 << 20, 1 << 20]}}, "elements for 'x'; expected at most"),
        ({"batch": 0}, "batch is 0; expected a whole number from 1"),
        ({"rounds": True}, "rounds is True"),
        ({"round_s": 0.01}, "round_s is 0.01"),
        ({"protocol": "tcp"}, "protocol is 'tcp'"),
        ({"rounds": 20, "round_s": 60}, "the rounds take 4,800 s; expected at most 600"),
    ],
)
def test_a_wrong_measurement_has_an_answer(document, text):
    with pytest.raises(CoreError, match=text):
        BenchRequest.of(document)


def test_a_server_without_a_known_port_refuses(served):
    code, text = refusal(f"http://127.0.0.1:{served.ports['http']}", "double", QUICK)

    assert code == 503
    assert "load over http needs a port of it that the options of the server name" in text


def own_flags(protocol, headers=None, **options):
    names = HttpOptions.__dataclass_fields__
    http = {key: value for key, value in options.items() if key in names}
    grpc = {key: value for key, value in options.items() if key not in names}
    found = Options.defaults(HttpOptions(**http), GrpcOptions(**grpc))
    return server_flags(SimpleNamespace(options=found), "m", protocol, headers or {})


def test_load_over_grpc_looks_at_the_tls_of_grpc():
    assert "--url=127.0.0.1:8001" in own_flags("grpc", http_use_ssl=True)
    assert "--url=https://127.0.0.1:8000" in own_flags("http", http_use_ssl=True)
    with pytest.raises(CoreError, match="load over grpc with TLS: run the command instead"):
        own_flags("grpc", grpc_use_ssl=True)
    with pytest.raises(
        CoreError, match=r"demands a certificate .* --ssl-https-client-certificate-file"
    ):
        own_flags("http", http_use_ssl=True, http_use_ssl_mutual=True)


def test_load_has_the_headers_of_restricted_apis():
    flags = own_flags(
        "http",
        {
            "x-team": "blue",
            "triton-grpc-protocol-k": "v",
            "other": "o",
            "Authorization": "Bearer t",
        },
        http_restricted_api={"inference": ("x-team", "blue")},
        grpc_restricted_protocol={"inference": ("k", "v")},
    )

    assert [each for each in flags if each.startswith("--header")] == [
        "--header=Authorization:Bearer t",
        "--header=x-team:blue",
        "--header=triton-grpc-protocol-k:v",
    ]
