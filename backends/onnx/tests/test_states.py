"""Implicit state: inputs and outputs of the file that clients do not see."""

import numpy as np
import pytest
from core_testing.served import request_of
from onnx import TensorProto

from core.errors import CoreError
from core.request import SEQUENCE_END, SEQUENCE_START, RequestedOutput

START, END = SEQUENCE_START, SEQUENCE_END
FLOAT, INT64, TEXT = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING

STATE = (
    'state [ { input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: [ 2 ] %s } ]'
)
FIRST = 'initial_state { name: "first" data_type: TYPE_FP32 dims: [ 2 ] data_file: "first.bin" }'
INSTANCE = "instance_group [ { kind: KIND_CPU count: 1 } ]"


def config(states, more="", strategy="direct { }", batch=4):
    return f"max_batch_size: {batch} sequence_batching {{ {strategy} {states} }} {INSTANCE} {more}"


@pytest.fixture
def accumulator(graph):
    """after = before + x, y = 2 * after."""
    return graph(
        [("Add", ["before", "x"], ["after"], {}), ("Add", ["after", "after"], ["y"], {})],
        {"x": (FLOAT, ["n", 2]), "before": (FLOAT, ["n", 2])},
        {"y": (FLOAT, ["n", 2]), "after": (FLOAT, ["n", 2])},
    )


def request(sequence, x, flags=0, outputs=()):
    made = request_of({"x": np.asarray(x)}, (), "m")
    made.outputs = tuple(RequestedOutput(name) for name in outputs)
    made.correlation_id, made.flags = sequence, flags
    return made


def answer(model, *args, **kwargs):
    (found,) = model.served.send([request(*args, **kwargs)])
    if isinstance(found, CoreError):
        raise found
    return found


def row(*values):
    return np.array([values], np.float32)


@pytest.mark.parametrize("strategy", ["direct { }", "oldest { max_candidate_sequences: 4 }"])
def test_a_sequence_accumulates(serve, accumulator, strategy):
    model = serve(accumulator, config(STATE % "", strategy=strategy))

    found = [
        answer(model, 1, row(*x), flags)["y"].tolist()
        for x, flags in (((1, 2), START), ((3, 4), 0), ((5, 6), END), ((7, 8), START))
    ]

    assert found == [[[2, 4]], [[8, 12]], [[18, 24]], [[14, 16]]]


def test_states_are_no_inputs_and_outputs_of_clients(serve, accumulator):
    model = serve(accumulator, config(STATE % ""))

    assert [io.name for io in model.config.input] == ["x"]
    assert [io.name for io in model.config.output] == ["y"]
    assert list(answer(model, 1, row(1, 2), START)) == ["y"]


def test_sequences_share_batches_but_not_states(serve, accumulator, rng):
    model = serve(accumulator, config(STATE % ""))
    sums = np.zeros((4, 2), np.float32)

    for step in range(6):
        xs = rng.integers(0, 9, (4, 2)).astype(np.float32)
        sums += xs
        found = model.served.send(
            [request(i + 1, xs[i : i + 1], START if step == 0 else 0) for i in range(4)]
        )
        assert [each["y"].tolist() for each in found] == [[(2 * s).tolist()] for s in sums]


@pytest.mark.parametrize("outputs", [[], ["y"], ["after"]])
def test_a_state_is_updated_even_if_the_client_does_not_want_the_output(
    serve, accumulator, outputs
):
    listed = "".join(
        f'output {{ name: "{name}" data_type: TYPE_FP32 dims: [ 2 ] }} ' for name in ("y", "after")
    )
    model = serve(accumulator, config(STATE % "", listed))

    first = answer(model, 1, row(1, 2), START, outputs)
    second = answer(model, 1, row(1, 2), 0)

    assert set(first) == set(outputs or ["y", "after"])
    assert second["after"].tolist() == [[2, 4]]


def test_a_file_gives_the_initial_state_of_sequences(serve, accumulator, tmp_path):
    folder = tmp_path / "models" / "m" / "initial_state"
    folder.mkdir(parents=True)
    (folder / "first.bin").write_bytes(row(10, 20).tobytes())
    model = serve(accumulator, config(STATE % FIRST))

    assert answer(model, 1, row(1, 2), START)["y"].tolist() == [[22, 44]]
    assert answer(model, 2, row(1, 2), START | END)["y"].tolist() == [[22, 44]]
    assert answer(model, 1, row(1, 2), END)["y"].tolist() == [[24, 48]]


def test_a_missing_file_fails_the_load(serve, accumulator):
    with pytest.raises(CoreError, match=r"initial_state/first\.bin: No such file or directory"):
        serve(accumulator, config(STATE % FIRST))


def test_a_state_may_grow(serve, graph):
    made = graph(
        [("Concat", ["old", "x"], ["new"], {"axis": 1}), ("Identity", ["new"], ["y"], {})],
        {"x": (FLOAT, ["n", 1]), "old": (FLOAT, ["n", "seen"])},
        {"y": (FLOAT, ["n", "more"]), "new": (FLOAT, ["n", "more"])},
    )
    growing = (
        'state [ { input_name: "old" output_name: "new" data_type: TYPE_FP32 dims: [ -1 ] '
        "use_same_buffer_for_input_output: true use_growable_memory: true } ]"
    )
    model = serve(made, config(growing))

    found = [answer(model, 1, row(i), START if i == 1 else 0)["y"].tolist() for i in (1, 2, 3)]

    assert found == [[[0, 1]], [[0, 1, 2]], [[0, 1, 2, 3]]]


def test_a_state_can_be_text(serve, graph):
    made = graph(
        [("Identity", ["x"], ["after"], {}), ("Identity", ["before"], ["y"], {})],
        {"x": (TEXT, ["n", 1]), "before": (TEXT, ["n", 1])},
        {"y": (TEXT, ["n", 1]), "after": (TEXT, ["n", 1])},
    )
    state = 'state [ { input_name: "before" output_name: "after" data_type: TYPE_STRING dims: 1 } ]'
    model = serve(made, config(state))

    found = [
        answer(model, 1, np.array([[text]], object), flags)["y"].item()
        for text, flags in ((b"one", START), (b"two", 0), (b"three", 0))
    ]

    assert found == [b"", b"one", b"two"]


def test_a_state_can_be_a_scalar_without_batching(serve, graph):
    made = graph(
        [("Add", ["before", "x"], ["after"], {}), ("Identity", ["after"], ["y"], {})],
        {"x": (INT64, []), "before": (INT64, [])},
        {"y": (INT64, []), "after": (INT64, [])},
    )
    state = 'state [ { input_name: "before" output_name: "after" data_type: TYPE_INT64 dims: 1 } ]'
    model = serve(made, config(state, batch=0))

    found = [answer(model, 1, np.array([5]), flags)["y"].item() for flags in (START, 0, END)]

    assert found == [5, 10, 15]


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ('"before"', '"bef"', "unexpected inference input 'bef'"),
        ('"after"', '"aft"', "unexpected inference output 'aft', allowed outputs are: after, y"),
        ("FP32", "INT32", "TYPE_INT32 for state input 'before', model provides TYPE_FP32"),
        ("[ 2 ]", "[ 3 ]", "tensor 'before': the model expects 2 dimensions"),
    ],
)
def test_a_state_that_the_file_contradicts_fails_the_load(
    serve, accumulator, right, wrong, expected
):
    with pytest.raises(CoreError) as error:
        serve(accumulator, config((STATE % "").replace(right, wrong)))
    assert expected in error.value.message


def test_a_warmup_starts_with_the_initial_state(serve, accumulator, caplog):
    warmup = (
        'model_warmup { name: "w" batch_size: 2 inputs { key: "x" '
        "value { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } }"
    )

    model = serve(accumulator, config(STATE % "", warmup))

    assert model.served.executions("m") == 1
    assert "failed" not in caplog.text
