"""A model that batches takes any number of rows, even if its file has a fixed number."""

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest

from core.errors import CoreError

X = np.arange(6, dtype=np.float32).reshape(2, 3)
BATCHES = 'backend: "openvino" max_batch_size: 4'
PADDED = BATCHES + ' parameters { key: "ENABLE_BATCH_PADDING" value { string_value: "YES" } }'


def test_a_fixed_first_dimension_becomes_dynamic(serve, doubled):
    model = serve(doubled(dims=(1, 3)), BATCHES)

    assert model(x=X)["y"].tolist() == (2 * X).tolist()


@pytest.fixture
def stubborn(model_of):
    """y = 2x for four rows only; it fails with another number."""
    return model_of(
        lambda x: {"y": op.reshape(op.add(x, x), np.array([4, 3]), False)}, x=(ov.Type.f32, (4, 3))
    )


def test_a_graph_for_one_batch_size_takes_full_batches(serve, stubborn):
    model = serve(stubborn, BATCHES)

    x = np.ones((4, 3), np.float32)

    assert model(x=x)["y"].tolist() == (2 * x).tolist()


def test_a_graph_for_one_batch_size_refuses_others(serve, stubborn):
    model = serve(stubborn, BATCHES)

    with pytest.raises(CoreError, match="expected requests with batch size '4', got '2'") as caught:
        model(x=X)

    assert (
        "'ENABLE_BATCH_PADDING' parameter in model configuration to 'YES'" in caught.value.message
    )


def test_padding_fills_batches_up(serve, stubborn):
    model = serve(stubborn, PADDED)

    assert model(x=X)["y"].tolist() == (2 * X).tolist()


def test_text_is_padded_too(serve, model_of):
    fixed = model_of(
        lambda x: {"y": op.reshape(x, np.array([4, 1]), False)}, x=(ov.Type.string, (4, 1))
    )
    model = serve(fixed, PADDED)

    assert model(x=np.array([[b"one"]], object))["y"].tolist() == [[b"one"]]


def test_the_dynamic_batch_can_be_disabled(serve, doubled):
    model = serve(
        doubled(dims=(1, 3)),
        PADDED + ' parameters { key: "SKIP_OV_DYNAMIC_BATCHSIZE" value { string_value: "YES" } }',
    )

    assert model(x=X)["y"].tolist() == (2 * X).tolist()


def test_a_graph_for_another_batch_size_is_refused(serve, stubborn):
    with pytest.raises(CoreError, match="with max_batch_size 8: its ") as caught:
        serve(stubborn, 'backend: "openvino" max_batch_size: 8')

    assert "unable to load model 'm'" in caught.value.message


def test_scalars_do_not_batch(serve, model_of):
    scalar = model_of(lambda x: {"y": op.add(x, x)}, x=(ov.Type.f32, ()))

    with pytest.raises(CoreError, match="is a scalar, which is one element to clients"):
        serve(
            scalar,
            BATCHES
            + ' input { name: "x" data_type: TYPE_FP32 dims: 1 }'
            + ' output { name: "y" data_type: TYPE_FP32 dims: 1 }',
        )


def test_requests_share_a_batch(serve, doubled):
    model = serve(doubled(), BATCHES + " dynamic_batching { }")

    answers = model.together(*({"x": np.full((1, 3), i, np.float32)} for i in range(4)))

    assert [answer["y"].tolist() for answer in answers] == [[[2 * i] * 3] for i in range(4)]


def test_instances_run_concurrently(serve, doubled):
    model = serve(doubled(), BATCHES + " instance_group { count: 3 kind: KIND_CPU }")

    answers = model.together(*({"x": np.full((1, 3), i, np.float32)} for i in range(30)))

    assert [answer["y"][0, 0] for answer in answers] == [2 * i for i in range(30)]
