"""Compiled functions: sizes of batches, how many are kept, datatypes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from backend_jax.functions import filled_up, powers_of_two, size_for
from jax import export

from core.errors import CoreError

ROW = ("float32", "b, 3")


def doubled(x):
    return {"y": x + x}


@pytest.mark.parametrize(
    ("most", "sizes"), [(1, (1,)), (2, (1, 2)), (5, (1, 2, 4, 5)), (8, (1, 2, 4, 8))]
)
def test_powers_of_two(most, sizes):
    assert powers_of_two(most) == sizes


def test_a_batch_gets_the_smallest_size_with_room():
    assert [size_for(rows, (1, 4, 16)) for rows in (1, 2, 4, 5, 16, 17)] == [1, 4, 4, 16, 16, 17]


def test_the_last_row_fills_up():
    assert filled_up(np.array([[1], [2]]), 4).tolist() == [[1], [2], [2], [2]]


def test_all_sizes_are_compiled_at_the_load(serve):
    config = 'backend: "jax" max_batch_size: 8'
    model = serve(doubled, config, x=ROW)
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **more: compiled.append(event) if "compile" in event else None
    )

    for rows in range(1, 9):
        x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
        assert model(x=x)["y"].tolist() == (2 * x).tolist()

    assert compiled == []


def test_sizes_of_the_configuration(serve):
    config = """backend: "jax" max_batch_size: 8
        parameters { key: "sizes" value { string_value: "3, 8" } }"""
    model = serve(doubled, config, x=ROW)

    assert model(x=np.ones((2, 3), np.float32))["y"].tolist() == [[2, 2, 2]] * 2


def test_rows_without_dims_may_be_so_in_the_configuration(serve):
    text = """backend: "jax" max_batch_size: 4
        input { name: "x" data_type: TYPE_FP32 dims: 1 reshape { } }
        output { name: "y" data_type: TYPE_FP32 dims: 1 reshape { } }"""
    model = serve(doubled, text, x=("float32", "b"))

    assert model(x=np.array([[1], [2]], np.float32))["y"].tolist() == [[2], [4]]


def test_dims_may_include_the_batch(serve):
    model = serve(doubled, 'backend: "jax" input { name: "x" dims: [ -1, 3 ] }', x=ROW)

    assert model.config.max_batch_size == 0
    assert model(x=np.ones((5, 3), np.float32))["y"].tolist() == [[2, 2, 2]] * 5


def test_functions_that_were_used_longest_ago_are_dropped(serve):
    config = 'backend: "jax" parameters { key: "shapes" value { string_value: "2" } }'
    model = serve(doubled, config, x=("float32", "n, m"))

    for side in (1, 2, 3, 1, 2, 3):
        assert model(x=np.ones((side, side), np.float32))["y"].shape == (side, side)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "int8", "int32", "uint8", "uint32", "bool"]
)
def test_datatypes(serve, dtype):
    model = serve(lambda x: {"y": jnp.flip(x)}, x=(dtype, "2, 2"))
    x = np.array([[0, 1], [1, 1]], dtype)

    answer = model(x=x)["y"]

    assert answer.dtype == x.dtype and answer.tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64"])
def test_datatypes_of_64_bits_need_no_setting_of_the_process(serve, dtype):
    def fill(folder):
        with jax.enable_x64(True):
            function = export.export(jax.jit(doubled))(
                x=jax.ShapeDtypeStruct((2,), np.dtype(dtype))
            )
        (folder / "model.jax").write_bytes(function.serialize())

    model = serve(fill)

    assert model(x=np.array([1, 2], dtype))["y"].dtype == np.dtype(dtype)
    assert not jax.config.jax_enable_x64


def test_a_scalar_is_one_element(serve):
    model = serve(doubled, x=("float32", ""))

    assert model(x=np.array([3], np.float32))["y"].tolist() == [6]


def test_a_failing_shape_names_what_was_expected(serve):
    model = serve(doubled, x=("float32", "2*n,"))

    with pytest.raises(
        CoreError, match="model 'm': Input shapes do not match the polymorphic shapes"
    ):
        model(x=np.ones(3, np.float32))
    assert model(x=np.ones(4, np.float32))["y"].tolist() == [2, 2, 2, 2]
