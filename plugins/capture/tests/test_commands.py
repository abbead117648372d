"""core capture: what it shows, exports and makes of a capture."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import core

from .conftest import bind_models, counts, message


@pytest.fixture
def recorded(capture):
    client = capture(capture_answers=True)
    client.infer(1.0, 2.0, id="mine", parameters={"sequence_id": 7})
    client.stub.ModelInfer(message(3.0), timeout=20)
    client.post("/v2/models/words/generate", {"text_input": "a"})
    list(client.stub.ModelStreamInfer(iter([message(4.0), message(5.0)]), timeout=20))
    client.records(4)
    client.stop()
    return client.folder


def test_show(recorded, command):
    done = command("capture", "show", recorded)

    lines = done.out.splitlines()
    assert done.status == 0
    assert [line[:2] for line in lines[:-1]] == ["#0", "#1", "#2", "#3"]
    assert "POST /v2/models/double/infer  200 " in lines[0]
    assert lines[3].endswith("2 answers")
    assert lines[-1].startswith("4 requests in ")
    assert lines[-1].endswith("0 failed, in 1 file: double 3, words 1")


def test_show_some(recorded, command):
    done = command("capture", "show", recorded, "--model", "double", "--limit", 1, "--json")

    row = json.loads(done.out)
    assert (row["model"], row["status"], row["answers"], row["number"]) == ("double", 200, 1, 0)


def test_show_one(recorded, command):
    first = command("capture", "show", recorded, "--record", 0).out
    stream = command("capture", "show", recorded, "--record", 3).out
    words = command("capture", "show", recorded, "--record", 2).out

    assert "POST /v2/models/double/infer HTTP/1.1\n" in first.replace("\r", "")
    assert "id mine\nparameters {'sequence_id': 7}\nx FP32[2] 1.0, 2.0\n" in first
    assert "\ny FP32[2] 2.0, 4.0\n" in first
    assert "x FP32[1] 4.0\nx FP32[1] 5.0\n" in stream
    last = "parameters {'triton_final_response': True}\n"
    assert f"y FP32[1] 8.0\n{last}y FP32[1] 10.0\n" in stream
    assert '{"text_input": "a"}' in words
    assert command("capture", "show", recorded, "--record", 9).status == 1


def test_a_path_without_a_capture(command, tmp_path):
    done = command("capture", "show", tmp_path)

    assert (done.status, "no files of a capture" in done.err) == (1, True)


def test_damage_is_named(recorded, command):
    (file,) = recorded.iterdir()
    file.write_bytes(file.read_bytes()[:-1])

    done = command("capture", "show", recorded)

    assert (done.status, "3 requests" in done.out) == (0, True)
    assert f"{file}: " in done.err and "are skipped: a record is incomplete" in done.err


def test_export(recorded, command, tmp_path):
    done = command("capture", "export", recorded, "--model", "double", "-o", tmp_path / "data")

    plain, sequence = sorted(
        json.loads((tmp_path / "data").read_text())["data"], key=len, reverse=True
    )
    assert done.err == "4 steps of model 'double', 1 sequences\n"
    assert [each["x"]["shape"] for each in plain] == [[1], [1], [1]]
    assert sequence == [{"x": {"b64": "AACAPwAAAEA=", "shape": [2]}}]


def test_export_of_rows(capture, command):
    client = capture()
    text = {"name": "t", "datatype": "BYTES", "shape": [2, 1], "data": ["a", "b"]}
    number = {"name": "n", "datatype": "INT64", "shape": [2, 2], "data": [1, 2, 3, 4]}
    client.post("/v2/models/m/infer", {"inputs": [text, number]})
    client.records(1)

    done = command("capture", "export", client.folder, "--rows")

    assert json.loads(done.out)["data"] == [
        {"t": {"content": ["a"], "shape": [1]}, "n": {"content": [1, 2], "shape": [2]}},
        {"t": {"content": ["b"], "shape": [1]}, "n": {"content": [3, 4], "shape": [2]}},
    ]


def test_an_export_without_a_model(recorded, command):
    done = command("capture", "export", recorded)
    none = command("capture", "export", recorded, "--model", "words")

    assert (done.status, none.status) == (1, 1)
    assert "choose one of double, words with --model" in done.err
    assert "no usable requests for model 'words'; 1: /v2/models/words/generate is no" in none.err


def test_core_bench_reads_a_capture(recorded):
    from core_bench.data.readers import intervals_of
    from core_bench.data.samples import samples_of
    from core_bench.model.description import ModelInfo, TensorInfo
    from core_bench.plan import Side

    from core.errors import CoreError

    def info(datatype="FP32", **more):
        return ModelInfo("double", "1", [TensorInfo("x", datatype, (-1,))], (), 0, **more)

    side = Side("double", "double", "", input_data=(str(recorded),))
    found = samples_of(info(), side)

    assert [each["x"].array().tolist() for each in found.requests] == [[1, 2], [3], [4], [5]]
    assert [len(each) for each in found.streams] == [1, 3]
    with pytest.raises(CoreError, match="is FP32, but that of the model INT8"):
        samples_of(info("INT8"), side)
    batched = ModelInfo("double", "1", [TensorInfo("x", "FP32", ())], (), 4)
    whole = samples_of(batched, dataclasses.replace(side, recorded_rows=True))
    assert [each["x"].shape for each in whole.requests] == [(2,), (1,), (1,), (1,)]
    assert whole.rows() == 1.25
    intervals = intervals_of([str(recorded)], "double")
    assert len(intervals) == 3 and min(intervals) >= 0 < sum(intervals)
    assert intervals_of(["random"], "double") == ()
    with pytest.raises(CoreError, match="has 0 requests for model 'absent'"):
        intervals_of([str(recorded)], "absent")


CONFIG = """backend: "python"
max_batch_size: %d
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "t" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
MODEL = """
import json, triton_python_backend_utils as pb
from pathlib import Path

class TritonPythonModel:
    def initialize(self, args):
        self.seen = Path(args["model_repository"]) / "seen"
    def execute(self, requests):
        found = []
        for each in requests:
            x, t = (pb.get_input_tensor_by_name(each, name).as_numpy() for name in "xt")
            found.append(pb.InferenceResponse([pb.Tensor("y", x)]))
            with self.seen.open("a") as file:
                file.write(json.dumps([x.tolist(), [e.decode() for e in t.ravel()]]) + "\\n")
        return found
"""


def test_a_capture_as_warmup(capture, command, tmp_path):
    client = capture()
    for rows, count in ((1, 1), (2, 3)):
        for number in range(count):
            x = {
                "name": "x",
                "datatype": "FP32",
                "shape": [rows, 2],
                "data": [number + 0.5] * rows * 2,
            }
            t = {"name": "t", "datatype": "BYTES", "shape": [rows, 1], "data": ["a"] * rows}
            client.post("/v2/models/rows/infer", {"inputs": [x, t]})
    client.records(4)
    folder = tmp_path / "models" / "rows"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(MODEL)
    (folder / "config.pbtxt").write_text(CONFIG % 4)

    shown = command("capture", "warmup", client.folder, folder)
    assert 'name: "capture-0"' in shown.out
    assert (folder / "config.pbtxt").read_text() == CONFIG % 4
    done = command("capture", "warmup", client.folder, folder, "--write")
    again = command("capture", "warmup", client.folder, folder, "--write")

    assert (done.status, "2 samples of 4 requests" in done.out) == (0, True)
    assert (again.status, "has samples of a capture already" in again.err) == (1, True)
    with core.Server(model_repository=[str(tmp_path / "models")]):
        pass
    seen = [json.loads(line) for line in (folder / "seen").read_text().splitlines()]
    # The combination that came three times is first: two requests of a row, then one.
    assert seen == [[[[0.5, 0.5]], ["a"]]] * 3


def test_warmup_needs_a_configuration(recorded, command, tmp_path):
    done = command("capture", "warmup", recorded, tmp_path)

    assert done.status == 1
    assert f"core config {tmp_path} > {Path(tmp_path, 'config.pbtxt')}" in done.err


def test_replay_over_the_other_protocol(recorded, plain, capture, command, tmp_path):
    address = ("--url", plain.url, "--grpc-url", plain.grpc_url, "--speed", "max")
    over_grpc = command("replay", recorded, *address, "--protocol", "grpc", "--model", "double")
    over_http = command("replay", recorded, *address, "--protocol", "http")

    assert (over_grpc.status, counts(over_grpc.out)) == (0, {"answers are equal": 3})
    assert over_http.status == 0
    assert counts(over_http.out) == {
        "answers are equal": 3,
        "no form over gRPC or HTTP": 1,
    }
    assert "a stream of 2 requests has no form over HTTP" in over_http.out

    other = capture({"double": lambda x: {"y": np.float32(x * 3)}}, folder=tmp_path / "other")
    address = ("--url", other.url, "--grpc-url", other.grpc_url, "--protocol", "grpc")
    differs = command("replay", recorded, *address, "--model", "double", "--json")
    assert json.loads(differs.out)["differing"] == 3


def test_the_models_of_these_tests_are_bound_once():
    """`bind_models` is what the plain server has, too: the same answers are no accident."""
    with core.Server() as server:
        bind_models(server)
        assert server.infer("double", {"x": np.array([1.5], np.float32)})["y"].tolist() == [3.0]
