"""The engine completes a configuration; configurations that it contradicts are refused."""

import pytest
from backend_tensorrt.check import check
from backend_tensorrt.complete import complete_with
from backend_tensorrt.facts import facts_of

from core import dtypes
from core.config import parse_text
from core.errors import CoreError

X, Y = ((1, 3), (4, 3), (8, 3)), ((1, 3), (2, 3), (16, 3))


@pytest.fixture
def engine(facts, port):
    return facts(port("x", X, Y), port("y", kind="HALF", dims=(-1, 4)))


def config(text=""):
    return parse_text(f'name: "m" platform: "tensorrt_plan" {text}', "config.pbtxt")


def completed(engine, text=""):
    found = config(text)
    complete_with(found, engine)
    return found


def test_everything_is_completed(engine):
    found = completed(engine)

    assert found.max_batch_size == 16  # of the profile with the most rows
    assert found.WhichOneof("scheduling_choice") == "dynamic_batching"
    assert [(io.name, io.data_type, list(io.dims)) for io in found.input] == [("x", 11, [3])]
    assert [(io.name, io.data_type, list(io.dims)) for io in found.output] == [("y", 10, [4])]
    check(found, engine)


def test_existing_settings_stay_unchanged(engine):
    found = completed(engine, 'max_batch_size: 2 input { name: "x" dims: 3 } sequence_batching { }')

    assert (
        found.max_batch_size == 2 and found.WhichOneof("scheduling_choice") == "sequence_batching"
    )
    assert found.input[0].data_type == dtypes.FP32.number
    check(found, engine)


def test_a_batch_of_one_gets_no_scheduler(facts, port):
    found = completed(
        facts(port("x", ((1, 3), (1, 3), (1, 3)), dims=(-1, 3)), port("y", dims=(-1, 3)))
    )

    assert found.max_batch_size == 1 and found.WhichOneof("scheduling_choice") is None


def test_an_engine_with_a_fixed_first_dimension_does_not_batch(facts, port):
    found = completed(facts(port("x", ((2, 3), (2, 3), (2, 3))), port("y", dims=(-1, 3))))

    assert found.max_batch_size == 0 and list(found.input[0].dims) == [2, 3]
    assert list(found.output[0].dims) == [-1, 3]


def test_dims_with_all_dimensions_mean_no_batches(engine):
    found = completed(engine, 'input { name: "x" dims: [ -1, 3 ] }')

    assert found.max_batch_size == 0 and list(found.output[0].dims) == [-1, 4]
    check(found, engine)


def test_shape_tensors_and_vectors_are_marked(facts, port):
    size = ((3,), (3,), (3,))
    ports = (
        port(
            "x",
            ((1, 32, 4, 4), (1, 32, 4, 4), (2, 32, 4, 4)),
            kind="INT8",
            linear=False,
            vector=1,
            lanes=32,
        ),
        port("size", size, kind="INT32", on_host=True, values=[((1, 1, 1), (1, 2, 2), (2, 9, 9))]),
        port("y", dims=(-1, -1, -1)),
    )

    found = completed(facts(*ports))

    x, shape = found.input
    assert x.is_non_linear_format_io and not x.is_shape_tensor and list(x.dims) == [32, 4, 4]
    assert shape.is_shape_tensor and list(shape.dims) == [2]  # its first value is the batch
    check(found, facts(*ports))


def test_states_and_batch_inputs_are_no_inputs_of_clients(facts, port):
    ports = port("x", X), port("old", X), port("y", dims=(-1, 3)), port("new", dims=(-1, 3))
    text = 'sequence_batching { state { input_name: "old" output_name: "new" data_type: TYPE_FP32 dims: 3 } }'

    found = completed(facts(*ports), text)

    assert [io.name for io in found.input] == ["x"] and [io.name for io in found.output] == ["y"]
    check(found, facts(*ports))


def test_a_scalar_is_one_element(facts, port):
    found = completed(facts(port("x", ((), (), ())), port("y", dims=())))

    assert list(found.input[0].dims) == [1] and found.max_batch_size == 0


@pytest.mark.parametrize("kind", ["INT4", "FP4"])
def test_a_type_that_the_protocol_lacks(facts, port, kind):
    with pytest.raises(CoreError, match=f"'y' is of type {kind}, which cannot be sent to clients"):
        completed(facts(port("x", X), port("y", kind=kind, dims=(-1, 3))))


FULL = (
    'max_batch_size: 8 input { name: "x" data_type: TYPE_FP32 dims: 3 } '
    'output { name: "y" data_type: TYPE_FP16 dims: 4 }'
)


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ('"x"', '"z"', "lacks x|unexpected inference input 'z', allowed inputs are: x"),
        ('"y"', '"z"', "unexpected inference output 'z', allowed outputs are: y"),
        ("FP32", "INT32", "expects datatype TYPE_INT32 for input 'x', model provides TYPE_FP32"),
        ("dims: 3", "dims: 5", r"the model expects shape \[-1, 3\], .* specifies \[-1, 5\]"),
        (
            "dims: 4",
            "dims: [ 4, 1 ]",
            r"the model expects shape \[-1, 4\], .* specifies \[-1, 4, 1\]",
        ),
        ("size: 8", "size: 17", "maximum batch size 17 for 'm', model maximum is 16"),
        ("dims: 3", "dims: 3 optional: true", "optional input 'x' is not supported"),
        ("dims: 3", "dims: 3 is_shape_tensor: true", "'x' is no shape tensor in the engine"),
        ("dims: 3", "dims: 3 is_non_linear_format_io: true", "'x' is linear in the engine"),
    ],
)
def test_contradictions_are_refused(engine, right, wrong, expected):
    check(config(FULL), engine)
    with pytest.raises(CoreError, match=expected):
        check(config(FULL.replace(right, wrong)), engine)


def test_a_missing_input_is_named(facts, port):
    with pytest.raises(
        CoreError, match=r"expects 1 inputs, model provides 2; config\.pbtxt lacks z$"
    ):
        check(config(FULL), facts(port("x", X), port("z", X), port("y", kind="HALF", dims=(-1, 4))))


def test_a_batch_of_an_engine_that_does_not_batch(facts, port):
    fixed = facts(port("x", ((2, 3), (2, 3), (2, 3))), port("y", kind="HALF", dims=(2, 4)))

    with pytest.raises(
        CoreError, match=r"'x' has the shape \[2, 3\], whose first dimension is not open"
    ):
        check(config(FULL), fixed)


def test_vectors_that_would_need_padding_are_refused(facts, port):
    bounds = ((1, 3, 4, 4), (1, 3, 4, 4), (2, 3, 4, 4))
    ports = (
        port("x", bounds, linear=False, vector=1, lanes=4),
        port("y", kind="HALF", dims=(-1, 4)),
    )

    with pytest.raises(
        CoreError, match="in vectors of 4 along dimension 1, whose size 3 is no multiple"
    ):
        completed_and_checked(facts(*ports))


def completed_and_checked(engine):
    check(completed(engine), engine)


def test_bytes_of_tensors_in_vectors(port):
    vectors = port("x", X, kind="HALF", linear=False, vector=1, lanes=8)

    assert vectors.byte_size((2, 3)) == 2 * 8 * 2
    assert port("x", X, kind="HALF").byte_size((2, 3)) == 2 * 3 * 2


def test_inputs_with_fixed_dimensions_need_no_profile(fake, port):
    ports = [
        port("x", ((1, 3), (4, 3), (8, 3))),
        port("w", ((2, 2), (2, 2), (2, 2))),
        port("y", dims=(-1, 3)),
    ]
    engine = fake.engine(ports, lambda x, w: {"y": x})
    real = engine.get_tensor_profile_shape
    engine.get_tensor_profile_shape = lambda name, profile: (
        real(name, profile) if name == "x" else []
    )

    found = facts_of(engine, fake.trt)

    assert found.inputs["w"].shapes[0].most == (2, 2) and found.inputs["x"].shapes[0].most == (8, 3)
