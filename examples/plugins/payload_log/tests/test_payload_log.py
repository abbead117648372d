"""Lines of a server with the plugin."""

import json
import time
import urllib.request

import core_payload_log

import core
from core import plugins

BODY = b'{"inputs": [{"name": "x", "datatype": "INT8", "shape": [1], "data": [3]}]}'


def test_a_line_has_request_and_answer(tmp_path):
    plugins.hooks().register(core_payload_log, "payload_log")
    try:
        with core.Server(payload_log=str(tmp_path / "log")) as server:
            tensors = {"inputs": {"x": ("INT8", [-1])}, "outputs": {"y": ("INT8", [-1])}}
            server.bind("double", lambda x: {"y": x * 2}, **tensors)
            base = f"http://127.0.0.1:{server.serve(http_port=0)['http']}/v2"
            urllib.request.urlopen(f"{base}/health/live").close()
            with urllib.request.urlopen(f"{base}/models/double/infer", BODY) as answer:
                sent = answer.read().decode()
    finally:
        plugins.hooks().unregister(core_payload_log)

    end = time.monotonic() + 10
    while not (text := (tmp_path / "log").read_text()):
        assert time.monotonic() < end
    assert json.loads(text) == {
        "target": "/v2/models/double/infer",
        "status": 200,
        "received": BODY.decode(),
        "sent": sent,
    }
