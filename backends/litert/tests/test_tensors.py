"""Datatypes, scalars, quantised tensors, signatures and batches."""

import numpy as np
import pytest
from backend_litert.small_model import GraphWriter

from core.errors import CoreError, Kind

NUMBERS = [
    *("float16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool"),
]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_every_datatype_goes_through_unchanged(serve, same, dtype):
    x = np.array([[0, 1, 1], [1, 0, 1]], dtype)

    answer = serve(same(dtype))(x=x)["y"]

    assert answer.dtype == x.dtype and answer.tolist() == x.tolist()


def test_a_datatype_that_the_protocol_lacks_is_refused_by_name(serve, same):
    with pytest.raises(CoreError, match="'x' is of type complex64, which cannot be sent") as caught:
        serve(same("complex64"))

    assert caught.value.kind is Kind.UNSUPPORTED or "convert it" in caught.value.message


def test_a_scalar_is_one_element(serve, doubled):
    model = serve(doubled("float32", ()))

    assert model(x=np.array([3], np.float32))["y"].tolist() == [6]


def test_rows_of_one_element_without_dims(serve, doubled):
    model = serve(doubled("float32", (-1,)), 'backend: "litert" max_batch_size: 4')

    assert model(x=np.array([[1], [2]], np.float32))["y"].tolist() == [[2], [4]]


def test_rows_without_dims_may_be_so_in_the_configuration(serve, doubled):
    text = """backend: "litert" max_batch_size: 4
        input { name: "x" data_type: TYPE_FP32 dims: 1 reshape { } }
        output { name: "y" data_type: TYPE_FP32 dims: 1 reshape { } }"""
    model = serve(doubled("float32", (-1,)), text)

    assert model(x=np.array([[1], [2]], np.float32))["y"].tolist() == [[2], [4]]


def test_dims_may_include_the_batch(serve, doubled):
    text = 'backend: "litert" input { name: "x" dims: [ -1, 3 ] }'
    model = serve(doubled(), text)

    assert model.config.max_batch_size == 0
    assert model(x=np.ones((5, 3), np.float32))["y"].tolist() == [[2, 2, 2]] * 5


def test_quantised_tensors_are_whole_numbers(serve, same):
    model = serve(same("int8", scale=(0.5, 3)))

    assert model(x=np.array([[-128, 0, 127]], np.int8))["y"].tolist() == [[-128, 0, 127]]


@pytest.mark.parametrize(("dtype", "low", "high"), [("int8", -65.5, 62.0), ("uint8", -1.5, 126.0)])
def test_float_tensors_are_converted_with_the_scale_of_the_file(serve, same, dtype, low, high):
    config = """backend: "litert" max_batch_size: 4
        parameters { key: "float_tensors" value { string_value: "true" } }"""
    model = serve(same(dtype, scale=(0.5, 3)), config)

    answer = model(x=np.array([[1.2, -1000, 1000]], np.float32))["y"]

    assert answer.dtype == np.float32
    assert answer.tolist() == [[1.0, low, high]]


def graph_with_signatures():
    graph = GraphWriter()
    x = graph.input("a", "float32", (-1, 2))
    y = graph.add(x, x, "b")
    graph.output(y)
    graph.signature("double", {"number": x}, {"twice": y})
    graph.signature("again", {"value": x}, {"result": y})
    return graph


def test_a_signature_gives_the_names(serve):
    config = """backend: "litert"
        parameters { key: "signature" value { string_value: "again" } }"""
    model = serve(graph_with_signatures(), config)

    assert model(value=np.array([[1, 2]], np.float32))["result"].tolist() == [[2, 4]]
    assert model(value=np.ones((3, 2), np.float32))["result"].shape == (3, 2)


@pytest.mark.parametrize("signature", ["", "serving_default", "first"])
def test_a_signature_may_belong_to_any_graph_of_the_file(serve, signature):
    graph = GraphWriter()
    x = graph.input("a", "float32", (-1, 2))
    graph.output(y := graph.add(x, x, "b"))
    graph.signature("first", {"x": x}, {"y": y})
    graph.next_graph()
    graph.input("unused", "float32", (1,))
    x = graph.input("a", "float32", (-1, 2))
    graph.output(y := graph.add(graph.add(x, x, "twice"), x, "b"))
    graph.signature("serving_default", {"x": x}, {"y": y})
    named = f"parameters {{ key: 'signature' value {{ string_value: '{signature}' }} }}"
    model = serve(graph, f'backend: "litert" max_batch_size: 4 {named if signature else ""}')

    factor = 2 if signature == "first" else 3
    for rows in (1, 3):
        x = np.full((rows, 2), 5, np.float32)
        assert model(x=x)["y"].tolist() == (factor * x).tolist()


def test_one_of_several_signatures_must_be_named(serve):
    with pytest.raises(CoreError, match="several signatures; it has: again, double; name one"):
        serve(graph_with_signatures())


def test_an_unknown_signature_is_an_error_with_those_of_the_file(serve):
    config = 'backend: "litert" parameters { key: "signature" value { string_value: "x" } }'
    with pytest.raises(CoreError, match="no signature 'x'; it has: again, double"):
        serve(graph_with_signatures(), config)


def test_a_file_with_one_row_runs_once_for_each_row(serve, doubled):
    model = serve(doubled("float32", (1, 3)), 'backend: "litert" max_batch_size: 4')
    x = np.arange(9, dtype=np.float32).reshape(3, 3)

    assert model(x=x)["y"].tolist() == (2 * x).tolist()


def test_a_file_with_one_row_may_be_resized(serve, doubled):
    config = """backend: "litert" max_batch_size: 4
        parameters { key: "resize_rows" value { string_value: "true" } }"""
    model = serve(doubled("float32", (1, 3)), config)
    x = np.arange(9, dtype=np.float32).reshape(3, 3)

    assert model(x=x)["y"].tolist() == (2 * x).tolist()


def mixing():
    """A graph with one row whose constant shape puts all rows into one."""
    graph = GraphWriter()
    graph.output(graph.reshape(graph.input("x", "float32", (1, 4)), (1, -1), "y"))
    return graph


def test_rows_that_a_file_mixes_are_an_error(serve):
    config = """backend: "litert" max_batch_size: 4
        input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
        output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
        parameters { key: "resize_rows" value { string_value: "true" } }"""
    model = serve(mixing(), config)

    assert model(x=np.ones((1, 4), np.float32))["y"].shape == (1, 4)
    with pytest.raises(CoreError, match=r"shape \[1, 8\] for 2 rows: .* do not keep rows apart"):
        model(x=np.ones((2, 4), np.float32))


def test_a_batch_needs_a_first_dimension_for_it(serve, doubled):
    with pytest.raises(
        CoreError, match=r"neither open nor 1 \('x' \[5, 3\], .*set max_batch_size to 0"
    ):
        serve(doubled("float32", (5, 3)), 'backend: "litert" max_batch_size: 4')


def test_a_run_that_fails_leaves_the_model_as_it_was(serve):
    graph = GraphWriter()
    x = graph.input("x", "float32", (-1, -1))
    graph.output(graph.add(x, graph.constant("w", np.ones(3, np.float32)), "y"))
    model = serve(graph)

    for _ in range(3):
        with pytest.raises(CoreError):
            model(x=np.ones((2, 5), np.float32))
        assert model(x=np.ones((2, 3), np.float32))["y"].tolist() == [[2, 2, 2]] * 2


def test_threads_of_two_instances_run_at_the_same_time(serve, doubled):
    config = 'backend: "litert" instance_group { kind: KIND_CPU count: 2 }'
    model = serve(doubled(), config)

    assert model(x=np.ones((1, 3), np.float32))["y"].tolist() == [[2, 2, 2]]
