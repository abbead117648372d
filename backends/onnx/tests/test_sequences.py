"""Sequences: the server sends the controls, which are inputs of the model but not of clients."""

import numpy as np
from core_testing.served import request_of
from onnx import TensorProto

from core.request import SEQUENCE_END, SEQUENCE_START

CONFIG = """
max_batch_size: 4
sequence_batching {
  control_input [
    { name: "start" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "id" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
}
instance_group [ { kind: KIND_CPU count: 1 } ]
"""


def test_controls_reach_the_model_and_are_no_inputs_of_clients(serve, graph):
    made = graph(
        [
            ("Cast", ["start"], ["begins"], {"to": TensorProto.FLOAT}),
            ("Cast", ["id"], ["offset"], {"to": TensorProto.FLOAT}),
            ("Add", ["x", "begins"], ["sum"], {}),
            ("Add", ["sum", "offset"], ["y"], {}),
        ],
        {
            "x": (TensorProto.FLOAT, ["n", 1]),
            "start": (TensorProto.INT32, ["n", 1]),
            "id": (TensorProto.UINT64, ["n", 1]),
        },
        {"y": (TensorProto.FLOAT, ["n", 1])},
    )
    model = serve(made, CONFIG)
    found = []

    for flags in (SEQUENCE_START, 0, SEQUENCE_END):
        request = request_of({"x": np.array([[100]], np.float32)}, (), "m")
        request.correlation_id, request.flags = 40, flags
        found += [answer["y"].item() for answer in model.served.send([request])]

    assert [io.name for io in model.config.input] == ["x"]
    assert found == [141, 140, 140]
