"""Traces of HTTP requests."""

import json

import pytest


def traced(path):
    return {"": [("level", "TIMESTAMPS"), ("rate", "1")], "triton": [("file", str(path))]}


def names(path):
    """The names of all times in a trace file."""
    entries = json.loads(path.read_text())
    return [stamp["name"] for entry in entries for stamp in entry.get("timestamps", ())]


async def test_a_trace_has_the_times_of_receiving_and_sending(open_with, document, tmp_path):
    async with open_with(trace_config=traced(tmp_path / "trace")) as site:
        reply = await site.infer("echo", document(1, 2))
        again = await site.infer("echo", document(3))

    assert (reply.status, reply.json["outputs"][0]["data"]) == (200, [1, 2])
    assert again.status == 200
    found = names(tmp_path / "trace")
    half = len(found) // 2
    assert found[:half] == found[half:]
    assert found[:3] == ["HTTP_RECV_START", "HTTP_RECV_END", "REQUEST_START"]
    assert found[half - 3 : half] == ["REQUEST_END", "HTTP_SEND_START", "HTTP_SEND_END"]


async def test_a_connection_continues_after_a_traced_response(open_with, document, tmp_path):
    async with open_with(trace_config=traced(tmp_path / "trace")) as site:
        connection = await site.connect()
        for value in range(3):
            reply = await connection.ask("POST", "/v2/models/echo/infer", document(value))
            assert reply.json["outputs"][0]["data"] == [value]

    assert names(tmp_path / "trace").count("HTTP_SEND_END") == 3


@pytest.mark.parametrize("model", ["broken"])
async def test_a_failed_request_is_traced_to_its_end(open_with, document, tmp_path, model):
    async with open_with(trace_config=traced(tmp_path / "trace")) as site:
        assert (await site.infer(model, document(1))).status == 500

    assert "REQUEST_END" in names(tmp_path / "trace")


async def test_settings_of_an_unknown_model_are_refused(site):
    for method in ("GET", "POST"):
        reply = await site.ask(method, "/v2/models/absent/trace/setting", {})
        assert reply.status == 400
        assert reply.json["error"] == "Request for unknown model : absent"
