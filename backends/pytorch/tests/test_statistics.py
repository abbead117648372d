"""The times of a batch in the statistics: inputs, inference and outputs, for all kinds of programs."""

import threading
import time

import numpy as np
import pytest
import torch
from backend_pytorch.instance import TorchInstance
from backend_pytorch.plain import PlainRun
from core_testing.fake_device import FakeDevice

X = np.ones((1, 3), np.float32)
SLOW_NS = 200_000_000
PHASES = ("compute_input", "compute_infer", "compute_output")
MODULE = """
import time
import torch


class Slow(torch.nn.Module):
    def forward(self, x):
        time.sleep(0.2)
        return x + 1
"""


def times(model):
    """Return the nanoseconds of each phase, from the requests and from the batches; the number of both."""
    found = model.served.statistics("m")
    (batches,) = found["batch_stats"]
    requests = found["inference_stats"]
    assert all(requests[each]["count"] == batches[each]["count"] for each in PHASES)
    return (
        [int(requests[each]["ns"]) for each in PHASES],
        [int(batches[each]["ns"]) for each in PHASES],
        int(requests["success"]["ns"]) - int(requests["queue"]["ns"]),
    )


def check(model, count=1):
    """The slow part is inference; no time is negative, lost or counted twice."""
    requests, batches, whole = times(model)
    for given, inference, taken in (requests, batches):
        assert min(given, inference, taken) >= 0
        assert inference >= count * SLOW_NS > given + taken
    assert sum(requests) <= whole


@pytest.fixture
def slow(monkeypatch):
    """Make every program of the test take SLOW_NS, whatever its kind."""
    ran, ran_plainly = TorchInstance._runner, PlainRun.__call__

    def slowly(run):
        def call(*arguments):
            time.sleep(SLOW_NS / 1e9)
            return run(*arguments)

        return call

    monkeypatch.setattr(TorchInstance, "_runner", lambda instance: slowly(ran(instance)))
    monkeypatch.setattr(PlainRun, "__call__", slowly(ran_plainly))


def test_a_module_of_python(serve, io):
    config = 'backend: "pytorch" runtime: "model.py" '
    config += (
        "max_batch_size: 4 " + io("input", ("x", "FP32", "3")) + io("output", ("y", "FP32", "3"))
    )
    model = serve(lambda folder: (folder / "model.py").write_text(MODULE), config)

    for _ in range(3):
        assert np.array_equal(model(x=X)["y"], X + 1)

    check(model, 3)


def test_torchscript(serve, io, modules, slow):
    config = (
        "max_batch_size: 4 " + io("input", ("x", "FP32", "3")) + io("output", ("y", "FP32", "3"))
    )
    model = serve(modules.Listed(), config)

    model(x=X)

    check(model)


def test_a_program_of_torch_export(serve, export, modules, slow):
    model = serve(
        lambda folder: export(modules.Identity(), folder / "model.pt2", torch.from_numpy(X))
    )

    model(x=X)

    check(model)


def test_on_a_gpu_inference_ends_when_the_device_is_done(
    serve, io, modules, monkeypatch, fake_streams
):
    """The call that starts a batch returns at once: the time until its mark belongs to the inference."""
    made = []

    def streams_of(device, program, polls):
        made.append(fake_streams(FakeDevice(), program.keeps_outputs))
        return made[-1]

    monkeypatch.setattr("backend_pytorch.instance.has_gpus", lambda: True)
    monkeypatch.setattr("backend_pytorch.cuda.streams_of", streams_of)
    config = (
        "max_batch_size: 4 instance_group [ { kind: KIND_MODEL count: 1 } ] "
        + io("input", ("x", "FP32", "3"))
        + io("output", ("y", "FP32", "3"))
    )
    model = serve(modules.Listed(), config)
    streams = made[-1]
    streams.gate.clear()

    def finish():
        end = time.monotonic() + 30
        while not streams.count("mark") and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(SLOW_NS / 1e9)
        streams.gate.set()  # also without a mark: the test then fails, and does not hang

    later = threading.Thread(target=finish, daemon=True)
    later.start()
    model(x=X)
    later.join()

    check(model)
