"""Traces of a whole Server: an ensemble over model folders, and the file after the end."""

import json

ENSEMBLE = """
platform: "ensemble"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "m" model_version: -1
    input_map { key: "x" value: "x" } output_map { key: "y" value: "a" } },
  { model_name: "m" model_version: -1
    input_map { key: "x" value: "a" } output_map { key: "y" value: "y" } }
] }
"""


def traced(path, rate="1"):
    return {
        "": [("level", "TIMESTAMPS"), ("rate", rate)],
        "triton": [("file", str(path))],
    }


async def test_steps_of_an_ensemble_are_children_of_its_trace(serve, models, ask, tmp_path):
    models.write("m", "3")
    models.write("e", "", config=ENSEMBLE)
    server = await serve(trace_config=traced(tmp_path / "trace"))
    await server.models.load("e")

    await ask(server, name="e")
    await ask(server, name="m")
    await server.stop(30)

    entries = json.loads((tmp_path / "trace").read_text())
    assert [entry for entry in entries if "model_name" in entry] == [
        {"id": 1, "model_name": "e", "model_version": 1},
        {"id": 2, "model_name": "m", "model_version": 1, "parent_id": 1},
        {"id": 3, "model_name": "m", "model_version": 1, "parent_id": 1},
        {"id": 4, "model_name": "m", "model_version": 1},
    ]
    ended = {
        entry["id"]
        for entry in entries
        if entry.get("timestamps", [{}])[0].get("name") == "REQUEST_END"
    }
    assert ended == {1, 2, 3, 4}


async def test_steps_count_as_no_requests_of_their_own(serve, models, ask, tmp_path):
    models.write("m", "3")
    models.write("e", "", config=ENSEMBLE)
    server = await serve(trace_config=traced(tmp_path / "trace", rate="2"))
    await server.models.load("e")

    for _ in range(4):
        await ask(server, name="e")
    await server.stop(30)

    entries = json.loads((tmp_path / "trace").read_text())
    heads = [entry for entry in entries if "model_name" in entry]
    assert [entry["model_name"] for entry in heads] == ["e", "m", "m", "e", "m", "m"]
