"""Calls of other models with tensors on a GPU, of models in processes of their own. The GPU is played."""

import os

import numpy as np
import pytest
from gpu_models import GPU, SAME, TWICE, X

import core
from core.testing import leftovers

CALLS = """
def execute(self, requests):
    y = call("twice", on_gpu("x", x_of(requests[0]).as_numpy()), PREFERRED)
    where = 0 if y.is_cpu() else 1000
    return [respond(pb_utils.Tensor("y", look(y) + where))]
"""


def test_inputs_and_outputs_of_a_call_stay_on_the_gpu(serve, log):
    models = serve(calls=CALLS.replace("PREFERRED", GPU))

    found = models.infer("calls", {"x": X})["y"]

    assert np.array_equal(found, X * 2 + 100 + 1000)
    assert log()["to host"] == 0 and log(os.getpid())["opened"] == 0
    assert leftovers.settles(lambda: models.lent("calls") == models.lent("twice") == (0, 0))
    assert leftovers.settles(lambda: log()["opened"] == log()["closed"] == 2)


def test_a_call_that_says_nothing_gets_its_answer_on_the_host(serve, log):
    models = serve(calls=CALLS.replace("PREFERRED", ""))

    found = models.infer("calls", {"x": X})["y"]

    assert np.array_equal(found, X * 2 + 100)
    assert log()["to host"] == log(models.pid("twice"))["to host"] == 1


def test_inputs_for_a_model_that_takes_none_there_are_copied_by_who_calls(serve, log):
    calls = CALLS.replace("PREFERRED", GPU).replace("twice", "forced")
    models = serve(calls=calls, forced=(TWICE, "version_policy { latest { } }"))

    found = models.infer("calls", {"x": X})["y"]

    assert np.array_equal(found, X * 2 + 1000)
    assert log()["to host"] == log(models.pid("calls"))["to host"] == 1


def test_a_call_of_a_model_that_is_not_there_says_so(serve):
    models = serve(calls=CALLS.replace("PREFERRED", GPU).replace("twice", "no"))

    with pytest.raises(core.CoreError, match="'no' is not ready"):
        models.infer("calls", {"x": X})
    assert leftovers.settles(lambda: models.lent("calls") == (0, 0))


def test_what_is_called_may_give_back_what_it_got(serve, log):
    calls = CALLS.replace("PREFERRED", GPU).replace("twice", "same")
    models = serve(calls=calls, same=SAME)

    found = models.infer("calls", {"x": X})["y"]

    assert np.array_equal(found, X + 1000)
    assert log()["opened"] == log()["to host"] == 0
    assert leftovers.settles(lambda: models.lent("calls") == models.lent("same") == (0, 0))


def test_answers_that_nobody_takes_any_more_go_back(serve, log):
    many = """
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for i in range(20):
                sender.send(respond(on_gpu("y", look(x_of(request)) + i)))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
    """
    calls = f"""
    def execute(self, requests):
        asked = pb_utils.InferenceRequest(model_name="many", requested_output_names=["y"],
                                          inputs=[x_of(requests[0])], {GPU})
        for response in asked.exec(decoupled=True):
            y = response.output_tensors()[0]
            return [respond(pb_utils.Tensor("y", look(y) + (0 if y.is_cpu() else 1000)))]
    """
    decoupled = "model_transaction_policy { decoupled: true }"
    models = serve(calls=calls, many=(many, decoupled))

    found = models.infer("calls", {"x": X})["y"]

    assert np.array_equal(found, X + 1000)
    assert leftovers.settles(lambda: models.lent("calls") == models.lent("many") == (0, 0))
    assert leftovers.settles(lambda: log(models.pid("many"))["freed"] >= 1)
