"""Missing fields of config.pbtxt are completed from the file; existing ones are never changed."""

import pytest
from onnx import TensorProto

from core.config import to_json
from core.errors import CoreError


@pytest.fixture
def two_in_one_out(graph):
    """FP32[n, 3] and INT64[n, d] → FP32[n, 3]"""
    return graph(
        [("Cast", ["ids"], ["cast"], {"to": TensorProto.FLOAT}), ("Add", ["x", "cast"], ["y"], {})],
        {"x": (TensorProto.FLOAT, ["n", 3]), "ids": (TensorProto.INT64, ["n", "d"])},
        {"y": (TensorProto.FLOAT, ["n", 3])},
    )


def tensors(config):
    """Return {name: (datatype, dims)} of inputs and outputs."""
    shown = to_json(config)
    return {io["name"]: (io["data_type"], io["dims"]) for io in shown["input"] + shown["output"]}


def test_a_model_without_any_configuration_is_served(serve, two_in_one_out):
    config = serve(two_in_one_out).config

    assert (config.backend, config.platform) == ("onnxruntime", "onnxruntime_onnx")
    assert config.default_model_filename == "model.onnx"
    assert tensors(config) == {
        "x": ("TYPE_FP32", [3]),
        "ids": ("TYPE_INT64", [-1]),
        "y": ("TYPE_FP32", [3]),
    }
    assert [io.name for io in config.input] == ["x", "ids"]


def test_a_model_that_can_batch_gets_batches_of_four_and_a_warning(serve, identity, caplog):
    config = serve(identity()).config

    assert config.max_batch_size == 4
    assert list(config.dynamic_batching.preferred_batch_size) == [4]
    assert "autofilled max_batch_size to 4 for model 'm'" in caplog.text


def test_the_default_batch_size_can_be_set(serve, identity):
    config = serve(identity(), settings={"default-max-batch-size": "16"}).config

    assert config.max_batch_size == 16


@pytest.mark.parametrize("size", ["0", "1"])
def test_no_batcher_for_batches_of_one_or_none(serve, identity, size):
    config = serve(identity(), settings={"default-max-batch-size": size}).config

    assert config.max_batch_size == int(size)
    assert config.WhichOneof("scheduling_choice") is None


def test_without_batching_dims_are_whole(serve, identity):
    config = serve(identity(), settings={"default-max-batch-size": "0"}).config

    assert tensors(config)["x"] == ("TYPE_FP32", [-1, 3])


def test_a_fixed_first_dimension_means_no_batching(serve, identity):
    config = serve(identity(shape=(2, 3))).config

    assert config.max_batch_size == 0
    assert tensors(config)["x"] == ("TYPE_FP32", [2, 3])


def test_a_scalar_output_means_no_batching(serve, graph):
    model = graph(
        [("ReduceSum", ["x"], ["y"], {"keepdims": 0})],
        {"x": (TensorProto.FLOAT, ["n", 3])},
        {"y": (TensorProto.FLOAT, [])},
    )

    config = serve(model).config

    assert config.max_batch_size == 0
    assert tensors(config) == {"x": ("TYPE_FP32", [-1, 3]), "y": ("TYPE_FP32", [1])}


def test_a_given_batch_size_is_kept(serve, identity):
    config = serve(identity(), "max_batch_size: 32").config

    assert config.max_batch_size == 32
    assert config.HasField("dynamic_batching")


def test_a_given_scheduler_is_kept(serve, identity):
    text = "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 5 }"

    assert serve(identity(), text).config.dynamic_batching.max_queue_delay_microseconds == 5


def test_a_complete_configuration_is_unchanged(serve, identity):
    config = serve(
        identity(),
        """
        input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] } ]
        output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, 3 ] } ]
        """,
    ).config

    assert config.max_batch_size == 0
    assert config.WhichOneof("scheduling_choice") is None


def test_outputs_alone_are_filled_in(serve, two_in_one_out):
    config = serve(
        two_in_one_out,
        """
        max_batch_size: 2
        input [
          { name: "ids" data_type: TYPE_INT64 dims: [ -1 ] },
          { name: "x" data_type: TYPE_FP32 dims: [ 3 ] }
        ]
        """,
    ).config

    assert [io.name for io in config.input] == ["ids", "x"]
    assert tensors(config)["y"] == ("TYPE_FP32", [3])


def test_an_entry_with_a_name_only_gets_type_and_dims(serve, two_in_one_out):
    config = serve(
        two_in_one_out,
        """
        max_batch_size: 2
        input [ { name: "x" }, { name: "ids" } ]
        output [ { name: "y" label_filename: "" } ]
        """,
    ).config

    assert tensors(config) == {
        "x": ("TYPE_FP32", [3]),
        "ids": ("TYPE_INT64", [-1]),
        "y": ("TYPE_FP32", [3]),
    }


def test_dims_with_the_first_dimension_mean_no_batching(serve, identity):
    config = serve(
        identity(), 'input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] } ]'
    ).config

    assert config.max_batch_size == 0
    assert tensors(config)["y"] == ("TYPE_FP32", [-1, 3])


def test_dims_without_the_first_dimension_mean_batching(serve, identity):
    config = serve(identity(), 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]').config

    assert config.max_batch_size == 4


def test_two_instances_on_the_cpu(serve, identity):
    group = serve(identity()).config.instance_group[0]

    assert group.count == 2


def test_an_error_for_impossible_batching_names_the_tensor(serve, identity):
    with pytest.raises(CoreError, match=r"does not support batching.*'x' has shape \[2, 3\]"):
        serve(identity(shape=(2, 3)), "max_batch_size: 8")


def test_a_setting_that_is_no_number_is_refused(serve, identity):
    with pytest.raises(CoreError, match="default-max-batch-size=many: it must be a whole number"):
        serve(identity(), settings={"default-max-batch-size": "many"})


def test_an_unknown_entry_is_an_error_with_the_known_ones(serve, identity):
    with pytest.raises(CoreError, match="unexpected inference input 'X', allowed inputs are: x"):
        serve(identity(), 'backend: "onnxruntime" input { name: "X" }')
