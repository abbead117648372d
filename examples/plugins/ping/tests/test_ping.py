"""The route on the HTTP port of a server with the plugin."""

import json
import urllib.error
import urllib.request

import core_ping
import pytest

import core
from core import plugins


@pytest.fixture
def ask():
    plugins.hooks().register(core_ping, "ping")
    try:
        with core.Server() as server:
            port = server.serve(http_port=0)["http"]

            def asked(path, method="GET"):
                url = f"http://127.0.0.1:{port}{path}"
                with urllib.request.urlopen(urllib.request.Request(url, method=method)) as answer:
                    return answer.read()

            yield asked
    finally:
        plugins.hooks().unregister(core_ping)


def test_it_answers_beside_the_routes_of_the_port(ask):
    assert ask("/ping/ann") == b"ann"
    assert ask("/v2/health/live") == b""


def test_another_method_is_refused(ask):
    with pytest.raises(urllib.error.HTTPError, match="405"):
        ask("/ping/ann", "DELETE")


def test_it_is_described(ask):
    paths = json.loads(ask("/openapi.json"))["paths"]

    assert paths["/ping/{name}"]["get"]["summary"] == "Return the name in the path."
