"""The route that tunes a model of the own server."""

import json
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from core_tune.http.request import TuneRequest

from core.errors import CoreError
from core.options import Options
from frontends.grpc.options import GrpcOptions
from frontends.http.options import HttpOptions

QUICK = {"slo": "p90=200ms", "round_s": 0.05, "measurements": 5}


def opened(running, model, document):
    url = f"http://{running.address.authority}/v2/models/{model}/tune"
    return urllib.request.urlopen(
        urllib.request.Request(url, json.dumps(document).encode()), timeout=60
    )


def config(running, model):
    return running.ask(f"/v2/models/{model}/config")


def test_a_search_tells_what_it_tries_and_ends_with_the_difference(running):
    running.add("web_sleeper", 0.008, 0.0005)
    before = config(running, "web_sleeper")

    with opened(running, "web_sleeper", QUICK) as answer:
        blocks = [each.split("\ndata: ") for each in answer.read().decode().split("\n\n") if each]
    found = [(name.removeprefix("event: "), json.loads(data)) for name, data in blocks]

    names = [name for name, _ in found]
    assert names[-1] == "report", found[-1]
    assert names[0] == "step" and 1 <= names.count("measurement") <= 5
    first = found[names.index("measurement")][1]
    assert first["answers_per_s"] > 0 and "instance" in first["shown"]
    report = found[-1][1]
    assert report["best_shown"] in {each["shown"] for each in report["settings"]}
    assert report["now_shown"] == "1 instance, no batching"
    assert config(running, "web_sleeper") == before


def test_a_search_ends_with_its_client_and_the_model_has_its_own_settings(running):
    running.add("left_sleeper", 0.008, 0.0005)
    before = config(running, "left_sleeper")

    with opened(running, "left_sleeper", {**QUICK, "measurements": 200}) as answer:
        while not answer.readline().startswith(b"event: measurement"):
            pass
        with pytest.raises(urllib.error.HTTPError) as caught:
            opened(running, "left_sleeper", QUICK)
    assert caught.value.code == 503
    assert "a search is running" in caught.value.read().decode()

    end = time.monotonic() + 120
    while True:  # until the search has ended
        try:
            opened(running, "left_sleeper", {**QUICK, "measurements": 1}).close()
            break
        except urllib.error.HTTPError as error:
            assert error.code == 503 and time.monotonic() < end
            time.sleep(0.1)
    while config(running, "left_sleeper") != before:
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    "document,text",
    [
        ([], "is no JSON object"),
        ({"objective": "p99=1ms"}, "unknown member 'objective'; expected slo"),
        ({"slo": "fast"}, "slo is 'fast'; expected an objective such as p99=20ms"),
        ({"slo": 20}, "slo is 20"),
        ({"minutes": 0}, "minutes is 0; expected a number from 0.01 to 60"),
        ({"measurements": 1.5}, "measurements is 1.5; expected a whole number from 1 to 200"),
        ({"shapes": {"x": "3"}}, "shapes has '3' for 'x'; expected a list"),
        ({"protocol": "tcp"}, "protocol is 'tcp'"),
        ({"apply": 1}, "apply is 1"),
    ],
)
def test_a_wrong_search_has_an_answer(document, text):
    with pytest.raises(CoreError, match=text):
        TuneRequest.of(document)


def test_shapes_are_flags():
    options = Options.defaults(HttpOptions(), GrpcOptions())
    wanted = TuneRequest.of({"shapes": {"x": [3, 224], "y:0": [1]}})

    flags = wanted.arguments(SimpleNamespace(options=options), "m", {})

    assert {"--shape=x:3,224", "--shape=y:0:1"} <= set(flags)
