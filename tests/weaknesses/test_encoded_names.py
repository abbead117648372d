"""Names of models that a client percent-encodes: one model, one set of rules for both spellings."""

import json

import pytest

CONFIG = """
backend: "test"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
NAMES = {"a b": "a%20b", "modell_ü": "modell_%C3%BC", "50%": "50%25", "c%20d": "c%20d"}


@pytest.fixture
def named(serve):
    return serve(dict.fromkeys(NAMES, CONFIG), model_control_mode="explicit", load_model=["*"])


@pytest.mark.parametrize("name", NAMES)
def test_every_route_finds_the_model(named, document, name):
    path = f"/v2/models/{NAMES[name]}"

    answer = named.ask("POST", f"{path}/infer", document(1.0))
    assert (answer.status, json.loads(answer.body)["model_name"]) == (200, name), answer.body
    assert named.ask("POST", f"{path}/versions/1/infer", document(1.0)).status == 200
    assert named.ask("POST", f"{path}/generate", {"x": [1.0]}).status == 200
    assert named.ask("GET", f"{path}/ready").status == 200
    assert json.loads(named.ask("GET", path).body)["name"] == name
    assert json.loads(named.ask("GET", f"{path}/config").body)["name"] == name
    assert json.loads(named.ask("GET", f"{path}/stats").body)["model_stats"][0]["name"] == name
    assert named.ask("GET", f"{path}/trace/setting").status == 200


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_unloaded_and_loaded(named, name):
    path = f"/v2/repository/models/{NAMES[name]}"
    ready = f"/v2/models/{NAMES[name]}/ready"

    assert named.ask("POST", f"{path}/unload", b"").status == 200
    assert named.ask("GET", ready).status == 400
    assert named.ask("POST", f"{path}/load", b"").status == 200
    assert named.ask("GET", ready).status == 200


@pytest.mark.parametrize(
    "path", ["%2e%2e", "..%2Fecho", "echo%2F..%2Frows", "%252e", "a%2520b", "a%FFb"]
)
def test_no_other_model_is_reachable(named, document, path):
    assert named.ask("POST", f"/v2/models/{path}/infer", document(1.0)).status in (400, 404)
    assert named.ask("POST", f"/v2/repository/models/{path}/load", b"").status != 200


def test_a_restricted_route_is_restricted_for_both_spellings(serve, document):
    named = serve({"a b": CONFIG}, http_restricted_api={"inference": ("key", "right")})

    for name in ("echo", "%65cho", "a%20b"):
        path = f"/v2/models/{name}/infer"
        assert named.ask("POST", path, document(1.0)).status == 403
        assert named.ask("POST", path, document(1.0), {"key": "right"}).status == 200
