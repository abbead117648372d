"""Names of arguments and results, settings, and the errors for files."""

import os
import random
from contextlib import nullcontext

import jax
import numpy as np
import pytest
from backend_jax import backend
from backend_jax.reading import ports_of, read
from backend_jax.settings import Settings, settings_of
from backend_jax.static_check import check_version
from core_testing.leftovers import growth_by_loads
from jax import export

from core.config import parse_text
from core.errors import CoreError

X = jax.ShapeDtypeStruct((2,), np.float32)


def config_of(text):
    return parse_text(f'name: "m" {text}', "config.pbtxt")


def parameter(name, value):
    return f"parameters {{ key: '{name}' value {{ string_value: '{value}' }} }}"


def written(folder, function, *args, **kwargs):
    file = folder / "model.jax"
    exported = export.export(jax.jit(function), platforms=["cpu"])(*args, **kwargs)
    file.write_bytes(exported.serialize())
    return file


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "inputs", "outputs"),
    [
        (lambda a, b: a + b, (X, X), {}, ["arg0", "arg1"], ["output0"]),
        (lambda given: given["p"] * 2, ({"p": X},), {}, ["p"], ["output0"]),
        (lambda *, p, q: {"s": p + q}, (), {"p": X, "q": X}, ["p", "q"], ["s"]),
        (lambda a, *, q: (a, q), (X,), {"q": X}, ["arg0", "q"], ["output0", "output1"]),
        (lambda a, b: {"s": [a, b["k"]]}, (X, {"k": X}), {}, ["arg0", "arg1.k"], ["s.0", "s.1"]),
    ],
)
def test_names(tmp_path, function, args, kwargs, inputs, outputs):
    ports = ports_of(read(written(tmp_path, function, *args, **kwargs), "m"), Settings(), "m")

    assert (list(ports.inputs), list(ports.outputs)) == (inputs, outputs)


def test_names_of_the_configuration(serve):
    config = f'backend: "jax" {parameter("inputs", "a, b")} {parameter("outputs", "sum")}'
    model = serve(lambda folder: written(folder, lambda a, b: a - b, X, X), config)

    one, two = np.ones(2, np.float32), np.full(2, 2, np.float32)
    assert model(a=two, b=one)["sum"].tolist() == [1, 1]


def test_another_number_of_names_is_an_error_with_those_of_the_file(tmp_path):
    file = written(tmp_path, lambda a, b: a, X, X)
    with pytest.raises(CoreError, match="'inputs' has 1 names, the function has 2: arg0, arg1"):
        ports_of(read(file, "m"), Settings(inputs=("a",)), "m")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("inputs", "a,,b", "different names with commas"),
        ("outputs", "a,a", "different names with commas"),
        ("sizes", "0", "whole numbers from 1 to"),
        ("sizes", "1,2", "sizes whose largest is max_batch_size, 8"),
        ("shapes", "1,2", "one number"),
        ("shapes", "x", "whole numbers from 1 to"),
    ],
)
def test_wrong_values_are_errors_with_what_is_expected(name, value, text):
    with pytest.raises(CoreError, match=f"expected the parameter '{name}' to be {text}"):
        settings_of(config_of(f"max_batch_size: 8 {parameter(name, value)}"))


def test_a_missing_file_is_an_error_with_the_existing_files(serve):
    with pytest.raises(CoreError, match=r"unable to find '.*1/model.jax' for model 'm'.*net.jax"):
        serve(lambda folder: (folder / "net.jax").touch())


@pytest.mark.parametrize("content", [b"", b"garbage" * 100])
def test_a_file_of_another_format_is_an_error(serve, content):
    with pytest.raises(CoreError, match=r"cannot load '.*model.jax': JAX \d.* cannot read it: "):
        serve(content)


def answer(model):
    """Load the file that is there. Return what it answers; None if the load or the request fails."""
    try:
        model.served.load("m")
        return model(arg0=np.array([1, 2], np.float32))["output0"].tolist()
    except CoreError:
        return None


@pytest.mark.parametrize("seed", range(3))
def test_a_truncated_file_fails_the_load_or_answers_as_the_whole_one(tmp_path, serve, seed):
    """At the end of a file are fields that JAX writes for its older versions, and does not read."""
    chance = random.Random(seed)
    model = serve(lambda folder: written(folder, lambda a: a * 2, X))
    file = tmp_path / "models" / "m" / "1" / "model.jax"
    good = file.read_bytes()
    for _ in range(12):
        file.write_bytes(good[: chance.randrange(len(good))])
        assert answer(model) in (None, [2, 4])
    for half in (good[: len(good) // 2], good[: len(good) // 4]):
        file.write_bytes(half)
        assert answer(model) is None


@pytest.mark.parametrize("seed", range(3))
def test_changed_bytes_end_no_process(tmp_path, serve, seed):
    """A load fails, or the model answers; it may answer something else."""
    chance = random.Random(seed)
    model = serve(lambda folder: written(folder, lambda a: a * 2, X))
    file = tmp_path / "models" / "m" / "1" / "model.jax"
    good = file.read_bytes()
    for _ in range(12):
        content = bytearray(good)
        content[chance.randrange(len(content))] = chance.randrange(256)
        file.write_bytes(content)
        answer(model)
    file.write_bytes(good)
    assert answer(model) == [2, 4]


LOADS = int(os.environ.get("LOADS", "100"))  # LOADS=1000 is the long form


def test_memory_is_flat_over_many_loads(serve):
    model = serve(lambda a: {"b": a * 2}, a=("float32", "n, 4"))
    x = np.ones((2, 4), np.float32)

    assert growth_by_loads(model.served, "m", lambda: model(a=x), LOADS) < 16 << 20


def test_a_function_for_another_platform_is_refused_by_name(serve):
    def fill(folder):
        function = export.export(jax.jit(lambda a: a * 2), platforms=["cuda"])(X)
        (folder / "model.jax").write_bytes(function.serialize())

    with pytest.raises(
        CoreError, match="was exported for cuda, the instance has KIND_CPU; export it with"
    ):
        serve(fill)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "max_batch_size: 4",
            "not all tensors of the function begin with the same variable dimension",
        ),
        ('input { name: "z" }', "unexpected inference input 'z', allowed inputs are: arg0"),
        (
            'input { name: "arg0" data_type: TYPE_INT32 dims: [ 2 ] }',
            "expects datatype TYPE_INT32 for 'arg0', model provides TYPE_FP32",
        ),
        (
            'input { name: "arg0" data_type: TYPE_FP32 dims: [ 4 ] }',
            r"tensor 'arg0': the model has dims \[2\], the configuration \[4\]",
        ),
    ],
)
def test_what_contradicts_the_file_is_an_error_of_a_check_and_of_a_load(
    tmp_path, serve, text, error
):
    file = written(tmp_path, lambda a: a * 2, X)
    with pytest.raises(CoreError, match=error):
        check_version(config_of(text), tmp_path, backend)
    with pytest.raises(CoreError, match=error):
        serve(file.read_bytes(), f'backend: "jax" {text}')


STATE = 'sequence_batching { state { input_name: "a" output_name: "b" data_type: %s dims: %s } }'
CONTROL = 'sequence_batching { control_input { name: "a" control { %s } } }'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (STATE % ("TYPE_FP32", "2"), None),
        (STATE % ("TYPE_FP32", "4"), r"'a': the model has dims \[2\], the configuration \[4\]"),
        (
            STATE % ("TYPE_FP64", "2"),
            "expects datatype TYPE_FP64 for 'a', model provides TYPE_FP32",
        ),
        (
            CONTROL % "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]",
            "expects datatype TYPE_INT32 for 'a', model provides TYPE_FP32",
        ),
        (
            CONTROL % "kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ]",
            r"'a': the model has dims \[2\], the configuration \[1\]",
        ),
    ],
)
def test_states_and_controls_are_compared_with_the_function(tmp_path, text, error):
    written(tmp_path, lambda *, a: {"b": a * 2}, a=X)
    with pytest.raises(CoreError, match=error) if error else nullcontext():
        assert check_version(config_of(text), tmp_path, backend)


def test_a_variable_that_comes_twice_is_no_batch(tmp_path):
    (side,) = export.symbolic_shape("n")
    file = written(tmp_path, lambda a: a.T, jax.ShapeDtypeStruct((side, side), np.float32))

    assert not ports_of(read(file, "m"), Settings(), "m").batches
