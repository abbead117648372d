"""perf_analyzer of Triton, which $PERF_ANALYZER names, reads an export, and sends the recorded inputs."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from core_capture.records.reader import CaptureReader

PROGRAM = os.environ.get("PERF_ANALYZER", "")
SPEC = {
    "inputs": {"x": ("FP32", [2]), "t": ("BYTES", [1]), "n": ("INT64", [2])},
    "outputs": {"y": ("FP32", [2])},
    "batching": True,
    "max_batch_size": 4,
}


def environment():
    """The environment of the program, with the library of CUDA that is in the packages beside it."""
    found = dict(os.environ)
    for each in Path(PROGRAM).parents[1].glob("**/libcudart.so.12"):
        found["LD_LIBRARY_PATH"] = str(each.parent)
    return found


@pytest.mark.skipif(
    not os.access(PROGRAM, os.X_OK),
    reason="$PERF_ANALYZER names no program; `make test-dropin` does",
)
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_recorded_inputs_arrive(capture, command, tmp_path, protocol):
    seen = set()

    def rows(x, t, n):
        for row in zip(x.round(3).tolist(), t.tolist(), n.tolist(), strict=True):
            seen.add(repr(row))
        return {"y": x}

    client = capture()
    client.server.bind("rows", rows, **SPEC)
    for number in range(6):
        count = 1 + number % 2
        x = np.arange(2 * count) + number / 10
        rows_of = {
            "x": ("FP32", [count, 2], x.tolist()),
            "t": ("BYTES", [count, 1], [f"w{number}{each}" for each in range(count)]),
            "n": ("INT64", [count, 2], [number] * 2 * count),
        }
        inputs = [
            {"name": name, "datatype": kind, "shape": shape, "data": data}
            for name, (kind, shape, data) in rows_of.items()
        ]
        assert client.post("/v2/models/rows/infer", {"inputs": inputs})[0] == 200
    client.records(6)
    sent, file = set(seen), tmp_path / "data.json"
    assert command("capture", "export", client.folder, "--rows", "-o", file).status == 0

    seen.clear()
    url = {"http": client.url, "grpc": client.grpc_url}[protocol]
    arguments = [PROGRAM, "-m", "rows", "--input-data", file, "--request-count", "40"]
    done = subprocess.run(
        [*arguments, "-i", protocol, "-u", url],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert seen == sent
    assert len(list(CaptureReader(client.folder).records())) > 6
