"""UsageReport: what a request to a language model gets so that its responses tell the tokens."""

import numpy as np

from core import dtypes
from core.config import InputSpec, OutputSpec, Signature
from core.request import InferenceRequest, RequestedOutput
from core.tensor import Tensor
from frontends.shared.usage_meter import UsageReport

FLAG, OUTPUT = "return_num_output_tokens", "num_output_tokens"


def report(max_batch_size):
    return UsageReport(
        Signature(
            name="llm",
            version=1,
            inputs={
                "text_input": InputSpec("text_input", dtypes.BYTES, (1,)),
                FLAG: InputSpec(FLAG, dtypes.BOOL, (1,), optional=True),
            },
            outputs={
                "text_output": OutputSpec("text_output", dtypes.BYTES, (1,)),
                OUTPUT: OutputSpec(OUTPUT, dtypes.UINT32, (1,)),
            },
            max_batch_size=max_batch_size,
            decoupled=False,
        )
    )


def request(*shape, outputs=()):
    texts = np.full(shape, b"hello", object)
    made = InferenceRequest(
        "llm", inputs={"text_input": Tensor("text_input", dtypes.BYTES, shape, array=texts)}
    )
    made.outputs = tuple(map(RequestedOutput, outputs))
    return made


def test_the_flag_has_as_many_rows_as_the_other_inputs():
    for rows in (1, 2, 5):
        asked = request(rows, 1)
        report(8).request_outputs(asked)

        assert asked.inputs[FLAG].array.tolist() == [[True]] * rows


def test_the_flag_has_no_rows_without_batching():
    asked = request(1)
    report(0).request_outputs(asked)

    assert asked.inputs[FLAG].array.tolist() == [True]


def test_an_output_that_the_client_has_not_asked_for_is_added():
    asked = request(1, 1, outputs=["text_output"])

    assert report(8).request_outputs(asked) == {OUTPUT}
    assert [each.name for each in asked.outputs] == ["text_output", OUTPUT]
