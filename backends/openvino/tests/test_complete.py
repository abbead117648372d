"""The configuration is completed from the file."""

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest

from core.errors import CoreError


def described(entries):
    return [(io.name, io.data_type, list(io.dims)) for io in entries]


def test_names_datatypes_and_dims_are_filled_in(serve, doubled):
    model = serve(doubled(ov.Type.i32, (-1, 3, 5)))

    assert model.config.backend == "openvino"
    assert model.config.max_batch_size == 0
    assert described(model.config.input) == [("x", 8, [-1, 3, 5])]
    assert described(model.config.output) == [("y", 8, [-1, 3, 5])]


def test_a_layout_with_a_batch_makes_the_model_batch(serve, doubled, caplog):
    model = serve(doubled(layout="N..."))

    assert model.config.max_batch_size == 4
    assert model.config.HasField("dynamic_batching")
    assert described(model.config.input) == [("x", 11, [3])]
    assert "autofilled max_batch_size to 4 for model 'm'" in caplog.text


def test_the_default_batch_size_is_a_setting(serve, doubled):
    model = serve(doubled(layout="N..."), settings={"default-max-batch-size": "16"})

    assert model.config.max_batch_size == 16


def test_a_wrong_default_batch_size_is_refused(serve, doubled):
    with pytest.raises(CoreError, match=r"default-max-batch-size=many: it must be a whole number"):
        serve(doubled(layout="N..."), settings={"default-max-batch-size": "many"})


def test_batching_without_a_layout_is_accepted_with_a_warning(serve, doubled, caplog):
    model = serve(doubled(), 'backend: "openvino" max_batch_size: 8')

    assert described(model.config.input) == [("x", 11, [3])]
    assert "model layout for model m does not support batching" in caplog.text


def test_entries_with_a_name_only_are_completed(serve, doubled):
    model = serve(doubled(), 'backend: "openvino" input { name: "x" }')

    assert described(model.config.input) == [("x", 11, [-1, 3])]


def test_a_tensor_without_a_name_gets_the_name_of_its_node(serve):
    x = op.parameter([1, 3], ov.Type.f32, name="first")
    result = op.result(op.add(x, x))
    result.set_friendly_name("sum")

    model = serve(ov.Model([result], [x], "nameless"))

    assert described(model.config.input) == [("first", 11, [1, 3])]
    assert described(model.config.output) == [("sum", 11, [1, 3])]


@pytest.fixture
def free():
    """y = 2x of any rank."""
    x = op.parameter(ov.PartialShape.dynamic(), ov.Type.f32)
    x.output(0).set_names({"x"})
    y = op.add(x, x)
    y.output(0).set_names({"y"})
    return ov.Model([op.result(y)], [x], "free")


def test_a_dynamic_rank_needs_dims_in_the_configuration(serve, free):
    with pytest.raises(CoreError, match="leaves open how many dimensions input 'x' has"):
        serve(free)


def test_an_open_rank_takes_the_shape_of_the_configuration(serve, free):
    model = serve(
        free,
        """
        backend: "openvino"
        input { name: "x" data_type: TYPE_FP32 dims: [ -1, 2 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ -1, 2 ] }
        parameters { key: "RESHAPE_IO_LAYERS" value { string_value: "YES" } }
        """,
    )

    assert model(x=np.ones((3, 2), np.float32))["y"].tolist() == [[2, 2]] * 3


def test_an_unknown_entry_is_an_error_with_the_known_ones(serve, doubled):
    with pytest.raises(CoreError, match="unexpected inference output 'z', allowed outputs are: y"):
        serve(doubled(), 'backend: "openvino" output { name: "z" }')


@pytest.mark.parametrize(
    ("layout", "more", "scheduler"),
    [
        ("N...", "", "dynamic_batching"),
        ("", "", None),
        ("N...", "sequence_batching { }", "sequence_batching"),
    ],
)
def test_a_described_model_gets_a_scheduler_if_the_file_batches(
    serve, doubled, layout, more, scheduler
):
    model = serve(
        doubled(layout=layout),
        f"""
        backend: "openvino" max_batch_size: 4 {more}
        input {{ name: "x" data_type: TYPE_FP32 dims: 3 }}
        output {{ name: "y" data_type: TYPE_FP32 dims: 3 }}
        """,
    )

    assert model.config.WhichOneof("scheduling_choice") == scheduler


@pytest.mark.parametrize("rows", [0, 4])
def test_dynamic_dims_of_the_file_come_from_the_configuration(serve, model_of, rows):
    x = op.parameter(ov.PartialShape.dynamic(), ov.Type.f32)
    x.output(0).set_names({"x"})
    result = op.result(op.add(x, x))
    result.output(0).set_names({"y"})
    dims = "[ -1, 2 ]" if rows == 0 else "[ 2 ]"

    model = serve(
        ov.Model([result], [x], "open"),
        f'backend: "openvino" max_batch_size: {rows} '
        f'input {{ name: "x" dims: {dims} }} output {{ name: "y" dims: {dims} }}',
    )

    assert model(x=np.ones((3, 2), np.float32))["y"].tolist() == [[2, 2]] * 3
