"""Implicit state: inputs and outputs of the file that clients do not see."""

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from core_testing.served import request_of

from core.errors import CoreError
from core.request import SEQUENCE_END, SEQUENCE_START

CONFIG = """
backend: "openvino" max_batch_size: 4
sequence_batching { direct { }
  state [ { input_name: "before" output_name: "after" data_type: TYPE_%s dims: 2 } ] }
instance_group { kind: KIND_CPU count: 1 }
"""


@pytest.fixture
def accumulator(model_of):
    """after = before + x, y = 2 * after."""

    def graph(x, before):
        after = op.add(before, x)
        return {"after": after, "y": op.add(after, after)}

    return model_of(graph, x=(ov.Type.f32, (-1, 2)), before=(ov.Type.f32, (-1, 2)))


def ask(model, sequence, x, flags=0):
    made = request_of({"x": np.array([x], np.float32)}, (), "m")
    made.correlation_id, made.flags = sequence, flags
    (found,) = model.served.send([made])
    return {name: array.tolist() for name, array in found.items()}


def test_sequences_accumulate_concurrently(serve, accumulator):
    model = serve(accumulator, CONFIG % "FP32")

    assert ask(model, 1, (1, 2), SEQUENCE_START) == {"y": [[2, 4]]}
    assert ask(model, 2, (10, 10), SEQUENCE_START) == {"y": [[20, 20]]}
    assert ask(model, 1, (3, 4)) == {"y": [[8, 12]]}
    assert ask(model, 2, (1, 1), SEQUENCE_END) == {"y": [[22, 22]]}
    assert ask(model, 1, (0, 0), SEQUENCE_END) == {"y": [[8, 12]]}


def test_a_state_of_another_datatype_is_refused(serve, accumulator):
    with pytest.raises(CoreError, match="TYPE_FP16 for state 'before', model provides TYPE_FP32"):
        serve(accumulator, CONFIG % "FP16")
