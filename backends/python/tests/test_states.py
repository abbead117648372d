"""Implicit state: tensors that the server keeps for a model between the requests of a sequence."""

import numpy as np
import pytest

from core.request import SEQUENCE_END, SEQUENCE_START, RequestedOutput

MODES = ["process", "thread", "inline"]
STATES = """
output [ { name: "after" data_type: TYPE_FP32 dims: [ 1 ] } ]
sequence_batching { state [
    { input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: [ 1 ] },
    { input_name: "old_count" output_name: "new_count" data_type: TYPE_INT64 dims: [ 1 ] }
] }
"""
SUM = """
    def execute(self, requests):
        answers = []
        for request in requests:
            given = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
            count = given["old_count"] + 1
            after = given["before"] + given["x"]
            answers.append(pb_utils.InferenceResponse([
                pb_utils.Tensor("y", after * 100 + count.astype(np.float32)),
                pb_utils.Tensor("after", after),
                pb_utils.Tensor("new_count", count),
            ]))
        return answers
"""


def ask(model, value, flags=0, outputs=()):
    return model.ask(
        {"x": np.array([value], np.float32)},
        correlation_id=1,
        flags=flags,
        outputs=tuple(RequestedOutput(name) for name in outputs),
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("outputs", [[], ["y"], ["y", "after"]])
async def test_a_model_renews_its_states_whatever_outputs_a_client_wants(serve, mode, outputs):
    model = await serve(SUM, STATES, dims="1", mode=mode)

    replies = [
        ask(model, value, flags, outputs)
        for value, flags in ((1, SEQUENCE_START), (2, 0), (3, SEQUENCE_END), (7, SEQUENCE_START))
    ]
    answers = [await reply for reply in replies]

    assert [answer.output("y").array.item() for answer in answers] == [101, 302, 603, 701]
    assert {tensor.name for tensor in answers[0].outputs} == set(outputs or ["y", "after"])


@pytest.mark.parametrize("mode", MODES)
async def test_an_answer_with_an_error_renews_nothing(serve, mode):
    refusing = SUM.replace(
        "        return answers",
        """
            if given["x"][0] < 0:
                answers[-1] = pb_utils.InferenceResponse(error=pb_utils.TritonError("negative"))
        return answers""",
    )
    model = await serve(refusing, STATES, dims="1", mode=mode)
    await ask(model, 1, SEQUENCE_START)

    with pytest.raises(Exception, match="negative"):
        await ask(model, -1)

    assert (await ask(model, 2)).output("y").array.item() == 302
