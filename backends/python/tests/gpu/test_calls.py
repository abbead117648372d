"""Calls of other models with tensors on a GPU, from models in child processes. The GPU is played."""

import os

import numpy as np
import pytest
from core_testing import leftovers
from gpu_models import X

import core


def test_inputs_and_outputs_of_a_call_stay_on_the_gpu(models, log):
    found = models.infer("calls", {"x": X})["y"]

    assert np.array_equal(found, X * 2 + 100 + 1000)
    assert log()["to host"] == 0 and log(os.getpid())["opened"] == 0
    assert leftovers.settles(lambda: log()["opened"] == log()["closed"] == 2)


def test_a_call_without_a_preference_gets_its_response_on_the_host(models, log):
    found = models.infer("calls_plainly", {"x": X})["y"]

    assert np.array_equal(found, X * 2 + 100)
    assert log()["to host"] == log(models.pid("twice"))["to host"] == 1


def test_the_caller_copies_inputs_for_a_model_without_device_memory(models, log):
    found = models.infer("calls_forced", {"x": X})["y"]

    assert np.array_equal(found, X * 2 + 1000)
    assert log()["to host"] == log(models.pid("calls_forced"))["to host"] == 1


def test_a_call_of_an_unknown_model_is_an_error(models):
    with pytest.raises(core.CoreError, match="'no' is not ready"):
        models.infer("calls_nobody", {"x": X})


def test_a_called_model_may_return_its_input(models, log):
    found = models.infer("calls_same", {"x": X})["y"]

    assert np.array_equal(found, X + 1000)
    assert log()["opened"] == log()["to host"] == 0


def test_responses_without_a_receiver_are_released(models, log):
    found = models.infer("takes_one", {"x": X})["y"]

    assert np.array_equal(found, X + 1000)  # and then nothing is lent, as after every test
    assert leftovers.settles(lambda: log(models.pid("many"))["freed"] >= 1)
