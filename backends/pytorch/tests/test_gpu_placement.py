"""Instances of a model on a GPU: their device, the cores of their threads, and the rate limiter."""

import os
import sys

import numpy as np
import pytest
import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU that torch can use"),
]

# y: device, smallest core, and number of cores of the thread that runs the model. `ran` has the begin and
# the end of each run, in their order.
CODE = """import os, sys, time
import torch


class Tells(torch.nn.Module):
    def forward(self, x):
        ran = sys.modules["__main__"].__dict__.setdefault("placement_ran", [])
        ran.append("begin")
        device = x.device.index if x.is_cuda else -1
        cores = os.sched_getaffinity(0)
        time.sleep(0.02)
        ran.append("end")
        return torch.tensor([[device, min(cores), len(cores)]], dtype=x.dtype, device=x.device)
"""
PORTS = (
    'backend: "pytorch" runtime: "model.py" max_batch_size: 1 '
    'input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } '
    'output { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } '
)
X = {"x": np.ones((1, 1), np.float32)}
SLOT = 'rate_limiter { resources { name: "slot" count: 1 } }'


@pytest.fixture
def tells(serve):
    """tells(groups, **options): serve the model, and return the rows y of `count` requests sent at once."""

    def answers(groups, count=12, **options):
        fill = lambda folder: (folder / "model.py").write_text(CODE)  # noqa: E731
        model = serve(fill, PORTS + groups, **options)
        return np.concatenate([answer["y"] for answer in model.together(*[X] * count)])

    return answers


@pytest.fixture
def ran():
    """What the model's runs noted, in their order."""
    noted = sys.modules["__main__"].__dict__["placement_ran"] = []
    yield noted
    del sys.modules["__main__"].__dict__["placement_ran"]


def test_instances_run_on_the_devices_of_their_groups(tells):
    found = tells("instance_group [ { kind: KIND_GPU gpus: [ 0 ] count: 2 }, { kind: KIND_CPU } ]")

    assert set(found[:, 0]) == {0, -1}


def test_a_host_policy_binds_the_threads_of_its_gpu(tells):
    core = max(os.sched_getaffinity(0))
    policy = {"gpu_0": {"cpu-cores": f"{core}-{core}"}}
    groups = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] }, { kind: KIND_CPU } ]"

    found = tells(groups, host_policy=policy)

    assert {tuple(row) for row in found if row[0] == 0} == {(0, core, 1)}
    assert {row[2] for row in found if row[0] == -1} == {len(os.sched_getaffinity(0))}


@pytest.mark.parametrize("slots", [1, 2])
def test_a_gpu_runs_as_many_executions_as_it_has_resources(tells, ran, slots):
    groups = f"instance_group [ {{ kind: KIND_GPU gpus: [ 0 ] count: 2 {SLOT} }} ]"

    tells(groups, rate_limit="execution_count", rate_limit_resource={"slot": {0: slots}})

    running = np.cumsum([1 if each == "begin" else -1 for each in ran])
    assert running.max() == slots
