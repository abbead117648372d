"""Where tensors of models in processes of their own go, and when they are let go. The GPU is played."""

import os

import numpy as np

from core.testing import leftovers

X = np.array([[1, 2, 3]], np.float32)
GPU = "preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU)"
TWICE = """
def execute(self, requests):
    return [respond(on_gpu("y", look(x) * 2 + (0 if x.is_cpu() else 100))) for x in map(x_of, requests)]
"""
SAME = """
def execute(self, requests):
    return [respond(pb_utils.Tensor.from_dlpack("y", x_of(request))) for request in requests]
"""


def test_between_steps_in_two_processes_a_tensor_stays_on_the_gpu(serve, log):
    models = serve(both=("twice", "other"), other=TWICE)

    found = models.infer("both", {"x": X})["z"]

    assert np.array_equal(found, (X * 2) * 2 + 100)  # the second step found it there
    assert log()["to host"] == log(models.pid("other"))["to host"] == 1  # for the client
    assert log(os.getpid())["opened"] == 0  # the server has only passed it on
    assert log(models.pid("other"))["opened"] == 1


def test_a_process_gets_back_what_it_has_made(serve, log):
    models = serve()

    found = models.infer("both", {"x": X})["z"]

    assert np.array_equal(found, (X * 2) * 2 + 100)
    assert log()["to host"] == 1 and log()["opened"] == 0


def test_all_is_let_go_when_the_answer_has_gone(serve, log):
    models = serve(both=("twice", "other"), other=TWICE)

    for _ in range(3):
        models.infer("both", {"x": X})

    assert leftovers.settles(lambda: models.lent("twice") == models.lent("other") == (0, 0))
    assert leftovers.settles(lambda: log(models.pid("twice"))["freed"] == 3)
    assert log()["opened"] == log()["closed"] == 3
