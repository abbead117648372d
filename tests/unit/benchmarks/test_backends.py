"""The benchmark of backends: its cases are complete, and its table has the results."""

import re
import socket

import numpy as np
import pytest

from benchmarks.backends.__main__ import HEAD, Finding, line, main
from benchmarks.backends.bare import Connection
from benchmarks.backends.case import BACKENDS, Case, cases
from benchmarks.backends.loop import best, rate, sizes
from benchmarks.exchange import http_binary, read_http
from benchmarks.models import residual
from benchmarks.models.sample import Answer, Sample
from core.config import parse_text


class Doubling(Case):
    name, backend, package = "doubling", "none", "numpy"
    width = results = 3
    most = 4

    def write(self, folder):
        pass

    def load(self, folder):
        self.runs = []

        def run(inputs):
            self.runs.append(len(inputs["INPUT0"]))
            return {"OUTPUT0": 2 * inputs["INPUT0"]}

        return run


def test_the_loop_runs_batches_of_every_size_up_to_the_largest():
    case = Doubling()
    run = case.load(None)

    found = [rate(case, run, rows, 0) for rows in sizes(case)]

    assert set(case.runs) == {1, 2, 4}
    assert all(each > 0 for each in found)


def test_the_best_batch_is_the_largest_of_those_that_are_as_good():
    assert best({1: 10.0, 2: 99.0, 4: 100.0, 8: 98.0, 16: 90.0}) == 8


@pytest.mark.parametrize("case", cases(BACKENDS), ids=lambda case: case.name)
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_case_is_configured_with_and_without_dynamic_batching(case, dynamic):
    config = parse_text(case.config(dynamic=dynamic), "case")

    assert config.backend == case.backend
    assert config.max_batch_size == case.most
    assert config.HasField("dynamic_batching") is dynamic


def test_a_request_has_the_answer_of_the_framework():
    case = Doubling()

    sample = case.sample(case.load(None), 2)

    assert sample.difference(Answer({"OUTPUT0": 2 * sample.inputs["INPUT0"]})) == ""
    assert "other values" in sample.difference(Answer({"OUTPUT0": np.zeros((2, 3), np.float32)}))


def test_a_bare_server_answers_whatever_comes_in_whatever_pieces():
    case, (ours, theirs) = Doubling(), socket.socketpair()
    connection = Connection(ours, case, case.load(None))
    for i in range(3):
        sample = Sample({"INPUT0": np.full((2, 3), i, np.float32)}, {})
        asked = http_binary("doubling", sample)
        fields = {"Content-Length": len(asked.body), **asked.headers}
        head = "".join(f"\r\n{name}: {value}" for name, value in fields.items())
        data = f"POST {asked.path} HTTP/1.1{head}\r\n\r\n".encode() + asked.body
        for begin in range(0, len(data), 150):
            theirs.send(data[begin : begin + 150])
            assert connection.receive()

        head, _, body = theirs.recv(1 << 16).partition(b"\r\n\r\n")
        (size,) = re.findall(rb"Inference-Header-Content-Length: (\d+)", head)
        found = read_http(body, int(size))

        np.testing.assert_array_equal(found.outputs["OUTPUT0"], 2 * sample.inputs["INPUT0"])
    theirs.close()
    assert not connection.receive()


@pytest.mark.parametrize("backend", ["onnx", "pytorch", "openvino"])
def test_frameworks_agree_on_the_residual_network(backend, tmp_path):
    (case,) = [each for each in cases([backend]) if each.name.endswith("_residual")]
    pytest.importorskip(case.package)
    case.write(tmp_path / "1")
    rows = case.rows(2)

    found = case.load(tmp_path / "1")({"INPUT0": rows})["OUTPUT0"]

    # OpenVINO computes in bfloat16 where the processor can: eight bits.
    np.testing.assert_allclose(found, forward(rows), rtol=0.02, atol=4)


def forward(rows):
    """The residual network in numpy."""
    found = residual.network()
    images = rows.reshape(-1, residual.CHANNELS, residual.SIDE, residual.SIDE)
    images = np.maximum(convolved(images, found.stem), 0)
    for block in found.blocks:
        inner = convolved(np.maximum(convolved(images, block.first), 0), block.second)
        beside = convolved(images, block.shortcut) if block.shortcut else images
        images = np.maximum(inner + beside, 0)
    return images.mean((2, 3)) @ found.classes


def convolved(images, layer):
    size, stride, pad = layer.weights.shape[2], layer.stride, layer.padding
    padded = np.pad(images, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], layer.weights)


def test_a_line_stands_below_its_head():
    found = line(Finding("doubling", 4, 1000, 900, 0.9, 0.95, 444, 100, 800, 8.0))

    assert len(found) == len(HEAD)
    assert "90%" in found
    assert " 4.00 " in found  # ms of a batch
    assert " 444 " in found


def test_a_named_backend_whose_framework_is_missing_is_an_error(monkeypatch, capsys):
    (case,) = cases(["tvm"])
    monkeypatch.setattr(type(case), "package", "no_such_package")

    with pytest.raises(SystemExit) as ended:
        main(["--backend", "tvm"])

    assert ended.value.code == 2
    assert "--backend tvm: no_such_package is not installed" in capsys.readouterr().err
