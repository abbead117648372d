"""CUDA graphs: captured sizes, the graph of a batch, and equal answers with and without graphs."""

import numpy as np
import pytest
from backend_tensorrt.graphs import chosen, specs_of

from core.config import parse_text
from core.errors import CoreError

IO = 'name: "m" input { name: "x" dims: [ 3 ] } output { name: "y" dims: [ 3 ] } max_batch_size: 8 '
OPEN = IO.replace("[ 3 ]", "[ -1 ]")
BOUNDS = ((1, 1), (4, 3), (8, 16))


@pytest.fixture
def specs(facts, port):
    def make(text):
        return specs_of(
            parse_text(text, "config"), facts(port("x", BOUNDS), port("y", dims=(-1, -1)))
        )

    return make


def graph(rows, dims=(), low=""):
    shape = f'input {{ key: "x" value {{ dim: {list(dims)} }} }}' if dims else ""
    spec = f"graph_spec {{ batch_size: {rows} {shape} {low} }}"
    return f"optimization {{ cuda {{ graphs: true {spec} }} }}"


def lower(rows, dims):
    return f'graph_lower_bound {{ batch_size: {rows} input {{ key: "x" value {{ dim: {list(dims)} }} }} }}'


def sizes(found):
    return [each.shapes["x"] for each in found]


def test_there_are_no_graphs_by_default(specs):
    assert specs(IO) == ()
    assert specs(IO + graph(4).replace("true", "false")) == ()


def test_default_sizes_are_one_the_preferred_ones_and_the_maximum(specs):
    text = (
        IO
        + "optimization { cuda { graphs: true } } dynamic_batching { preferred_batch_size: [ 2, 4 ] }"
    )

    assert sizes(specs(text)) == [(1, 3), (2, 3), (4, 3), (8, 3)]


def test_sizes_without_a_scheduler_are_those_of_triton(specs):
    text = IO.replace("8 ", "14 ") + "optimization { cuda { graphs: true } }"

    assert [rows for rows, _ in sizes(specs(text))] == [1, 2, 3, 4, 6, 8, 12, 14]


def test_preferred_sizes_of_sequences(specs):
    text = IO + "optimization { cuda { graphs: true } } sequence_batching { oldest { %s } }"

    assert [rows for rows, _ in sizes(specs(text % "preferred_batch_size: [ 5 ]"))] == [1, 5, 8]


def test_dynamic_dimensions_get_the_optimum_of_a_profile(specs):
    text = OPEN + "optimization { cuda { graphs: true } } dynamic_batching { }"

    assert sizes(specs(text)) == [(1, 3), (8, 3)]
    assert sizes(specs(text.replace("[ -1 ]", "[ 5 ]"))) == [(1, 5), (8, 5)]


def test_every_profile_of_the_instance_has_its_graphs(facts, port):
    text = OPEN + "optimization { cuda { graphs: true } } dynamic_batching { }"
    wide = ((1, 1), (4, 9), (8, 16))
    known = facts(port("x", BOUNDS, wide, wide), port("y", dims=(-1, -1)))

    found = specs_of(parse_text(text, "config"), known, (0, 2))

    assert sizes(found) == [(1, 3), (8, 3), (1, 9), (8, 9)]


def test_inputs_of_several_requests_in_one_row_need_a_spec(specs, caplog):
    ragged = OPEN.replace("dims: [ -1 ] }", "dims: [ -1 ] allow_ragged_batch: true }", 1)

    assert specs(ragged + "optimization { cuda { graphs: true } }") == ()
    assert "say with optimization.cuda.graph_spec for which shapes" in caplog.text


def test_specs_of_batch_size_and_dims(specs):
    assert sizes(specs(IO + graph(4))) == [(4, 3)]
    assert sizes(specs(OPEN + graph(4, (7,)))) == [(4, 7)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (graph(9), "batch_size is 9, it must be between 1 and 8"),
        (graph(0), "batch_size is 0, it must be between 1 and 8"),
        (graph(4), "it must give every dimension of input 'x'"),
        (graph(4, (7,)).replace('"x"', '"z"'), "the engine has no input 'z'"),
        (graph(4, (7,), lower(5, (7,))), "graph_lower_bound must not be above"),
        (graph(4, (7,), lower(1, (8,))), "graph_lower_bound must not be above"),
        # CVE-2025-23335: numbers of a configuration that underflow or overflow.
        (graph(-1, (7,)), "batch_size is -1, it must be between 1 and 8"),
        (graph(2**31 - 1, (7,)), "batch_size is 2147483647, it must be between 1 and 8"),
        (graph(4, (-1,)), "it must give every dimension of input 'x'"),
        (graph(4, (-(2**63),)), "it must give every dimension of input 'x'"),
        (graph(4, (7,), lower(0, (7,))), "batch_size is 0, it must be between 1 and 8"),
        (graph(4, (7,), lower(-1, (7,))), "batch_size is -1, it must be between 1 and 8"),
        (graph(4, (7,), lower(1, (-1,))), "it must give every dimension of input 'x'"),
        (graph(4, (7, 7), lower(1, (7,))), "graph_lower_bound must not be above"),
    ],
)
def test_an_invalid_spec_is_refused(specs, text, expected):
    with pytest.raises(CoreError, match=expected):
        specs(OPEN + text)


def test_without_a_lower_bound_shapes_must_be_equal(specs):
    found = specs(OPEN + graph(4, (7,)))

    assert chosen(found, {"x": (4, 7)}) is found[0]
    assert [chosen(found, {"x": shape}) for shape in ((3, 7), (4, 6), (5, 7))] == [None] * 3


def test_with_lower_bounds_the_smallest_graph_that_fits_is_chosen(specs):
    small, large = graph(2, (8,), lower(1, (4,))), graph(8, (8,), lower(1, (4,)))
    both = small[:-4] + large[large.index("graph_spec") :]
    found = specs(OPEN + both)

    assert sizes(found) == [(2, 8), (8, 8)]
    assert [chosen(found, {"x": shape}) for shape in ((2, 5), (3, 8), (2, 3))] == [*found, None]


X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def summed(fake, port):
    """An engine in which an output row depends on all elements of its input row, and on no other row."""
    return fake.engine(
        [port("x", BOUNDS), port("y", dims=(-1, -1))], lambda x: {"y": x + x.sum(1, keepdims=True)}
    )


def expected(x):
    return (x + x.sum(1, keepdims=True)).tolist()


def test_batches_run_as_graphs(serve, summed, fake):
    served = serve(OPEN.replace('name: "m"', "") + graph(2, (3,)))

    for x in (X, X + 1, X + 2):
        assert served.ask({"x": x}, (), "m")["y"].tolist() == expected(x)
    assert fake.cuda.launched == 3
    assert served.ask({"x": X[:1]}, (), "m")["y"].tolist() == expected(X[:1])
    assert fake.cuda.launched == 3


@pytest.mark.parametrize("shape", [(4, 7), (3, 7), (1, 7), (4, 5), (2, 6)])
def test_a_batch_is_padded_to_the_graph(serve, summed, fake, shape):
    served = serve(OPEN.replace('name: "m"', "") + graph(4, (7,), lower(1, (5,))))
    rng = np.random.default_rng(7)

    for _ in range(3):
        x = rng.integers(0, 9, shape).astype(np.float32)
        found = served.ask({"x": x}, (), "m")["y"]
        assert found.shape == (
            shape[0],
            7,
        )  # dynamic dimensions are those of the graph, as in Triton
        assert found[:, : shape[1]].tolist() == expected(x)
        # The padding of a row is zeros, not data of another request.
        filled = np.repeat(x.sum(1, keepdims=True), 7 - shape[1], 1)
        assert found[:, shape[1] :].tolist() == filled.tolist()
    assert fake.cuda.launched == 3


@pytest.mark.parametrize("dims", [(0,), (17,), (2**31,), (2**62,), (2**63 - 1,), (7, 7), ()])
def test_a_graph_of_shapes_that_the_engine_refuses_allocates_no_memory(
    serve, summed, fake, monkeypatch, dims
):
    """CVE-2025-23335: a configuration of an engine with numbers that underflow."""
    sizes, memory = [], fake.cuda.memory
    monkeypatch.setattr(
        fake.cuda, "memory", lambda size, stream: sizes.append(size) or memory(size, stream)
    )

    try:
        served = serve(OPEN.replace('name: "m"', "") + graph(4, dims))
    except CoreError as error:
        assert error.message
    else:
        assert served.ask({"x": X}, (), "m")["y"].tolist() == expected(X)

    assert all(0 < size < 2**20 for size in sizes)


def test_a_buffer_that_grows_makes_its_graphs_invalid(serve, summed, fake):
    served = serve(OPEN.replace('name: "m"', "") + graph(2, (3,)))
    large = np.ones((8, 16), np.float32)

    for x in (X, large, X + 1, X + 2, X + 3, X + 4):
        assert served.ask({"x": x}, (), "m")["y"].tolist() == expected(x)

    assert 1 < fake.cuda.launched < 5


def test_an_engine_that_cannot_be_captured_runs_without_graphs(serve, summed, fake, caplog):
    fake.cuda.no_capture = True

    served = serve(OPEN.replace('name: "m"', "") + graph(2, (3,)))

    assert served.ask({"x": X}, (), "m")["y"].tolist() == expected(X)
    assert fake.cuda.launched == 0 and "no CUDA graph for {'x': (2, 3)}" in caplog.text


def test_sizes_that_no_profile_allows_have_no_graph_and_the_model_is_served(
    serve, fake, port, caplog
):
    fake.engine(
        [port("x", ((2, 3), (4, 3), (8, 3))), port("y", dims=(-1, 3))], lambda x: {"y": 2 * x}
    )

    served = serve("max_batch_size: 8 optimization { cuda { graphs: true } }")

    assert "no CUDA graph for {'x': (1, 3)}" in caplog.text
    assert served.ask({"x": np.ones((8, 3), np.float32)}, (), "m")["y"].tolist() == [[2.0] * 3] * 8
    assert fake.cuda.launched == 1
