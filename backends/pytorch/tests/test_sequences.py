"""Inputs that the server adds to a request reach the model: states, controls, ragged batches."""

import numpy as np
from core_testing.served import request_of

from core.request import SEQUENCE_END, SEQUENCE_START

ONE = "instance_group [ { kind: KIND_CPU count: 1 } ]"


def asked(model, x, flags=0, sequence=40):
    request = request_of({"x": np.asarray(x, np.float32)}, (), "m")
    request.correlation_id, request.flags = sequence, flags
    (found,) = model.served.send([request])
    return found


def test_a_state_is_passed_from_one_request_to_the_next(serve, modules, io):
    model = serve(
        modules.Adding(),
        "max_batch_size: 4 sequence_batching { direct { } state [ { "
        'input_name: "total" output_name: "after" data_type: TYPE_FP32 dims: [ 1 ] } ] } '
        + io("input", ("x", "FP32", 1))
        + io("output", ("y", "FP32", 1))
        + ONE,
    )

    found = [
        asked(model, [[value]], flags)["y"].item()
        for value, flags in ((1, SEQUENCE_START), (2, 0), (3, SEQUENCE_END), (9, SEQUENCE_START))
    ]

    assert found == [1, 3, 6, 9]


def test_controls_reach_the_model(serve, modules, io):
    model = serve(
        modules.Sum(),
        "max_batch_size: 4 sequence_batching { control_input [ { "
        'name: "y" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ] } '
        + io("input", ("x", "FP32", 1))
        + io("output", ("sum", "FP32", 1))
        + ONE,
    )

    found = [
        asked(model, [[10]], flags)["sum"].item() for flags in (SEQUENCE_START, 0, SEQUENCE_END)
    ]

    assert [io.name for io in model.config.input] == ["x"]
    assert found == [11, 10, 10]


def test_requests_of_different_shapes_share_a_batch(serve, modules, io):
    model = serve(
        modules.Described(),
        "max_batch_size: 8 dynamic_batching { } "
        + io("input", ("x", "FP32", -1, "allow_ragged_batch: true"))
        + io("output", ("OUTPUT__0", "FP32", -1), ("OUTPUT__1", "FP32", 1))
        + 'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "about" data_type: TYPE_FP32 '
        'source_input: "x" } ] '
        'batch_output [ { target_name: "OUTPUT__0" kind: BATCH_SCATTER_WITH_INPUT_SHAPE '
        'source_input: "x" } ] ' + ONE,
    )
    a, b = np.array([[1, 2, 3]], np.float32), np.array([[4, 5, 6, 7, 8]], np.float32)

    first, second = model.together({"x": a}, {"x": b})

    assert first["OUTPUT__0"].tolist() == (2 * a).tolist()
    assert second["OUTPUT__0"].tolist() == (2 * b).tolist()
    assert [first["OUTPUT__1"].tolist(), second["OUTPUT__1"].tolist()] == [[[3]], [[5]]]
