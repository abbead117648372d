"""Files are read, and compared with each other and the configuration, without Paddle."""

import json
import random
from contextlib import nullcontext

import numpy as np
import pytest
from backend_paddle import backend
from backend_paddle.complete import complete
from backend_paddle.messages import ProgramDesc
from backend_paddle.program_desc import read_program_desc
from backend_paddle.reading import read_model
from backend_paddle.static_check import check_version
from backend_paddle.tensors import Port

from core.config import parse_text
from core.errors import CoreError

FLOATS = ("float32", (-1, 3))


def config_of(text=""):
    return parse_text(f'name: "m" {text}', "config.pbtxt")


def read(folder, text=""):
    return read_model(config_of(text), folder)


@pytest.mark.parametrize(
    ("written", "file"), [("program_desc", "model.pdmodel"), ("pir", "inference.json")]
)
def test_names_datatypes_and_dims_in_the_order_of_the_program(tmp_path, small, written, file):
    content = getattr(small, written)(
        {"b": FLOATS, "a": ("int64", (-1, -1))},
        {"z": ("bool", ()), "y": ("bfloat16", (2,))},
        {"w": ("float32", (3,))},
    )
    (tmp_path / file).write_bytes(content)
    weights = (tmp_path / file).with_suffix(".pdiparams")
    weights.write_bytes(small.weights_file(np.zeros(3, np.float32)))

    found = read(tmp_path).program

    assert list(found.ports.inputs.values()) == [
        Port("b", "float32", (-1, 3)),
        Port("a", "int64", (-1, -1)),
    ]
    assert list(found.ports.outputs.values()) == [
        Port("z", "bool", ()),
        Port("y", "bfloat16", (2,)),
    ]
    assert list(found.weights) == ["w"]
    assert not found.ports.batches


@pytest.mark.parametrize(
    ("entry", "rows"),
    [
        ('input { name: "x" dims: [ -1, 3 ] }', 0),
        ('output { name: "y" dims: [ 8, 3 ] }', 0),
        ('input { name: "x" dims: [ 3 ] }', 4),
    ],
)
def test_dims_with_the_batch_are_for_a_model_without_max_batch_size(tmp_path, small, entry, rows):
    (tmp_path / "model.json").write_bytes(small.pir({"x": FLOATS}, {"y": FLOATS}))
    config = config_of(entry)

    check_version(config, tmp_path, backend)

    assert config.max_batch_size == rows
    assert [list(io.dims)[-1] for io in (*config.input, *config.output)] == [3, 3]


def test_rows_without_dims_may_be_so_in_the_configuration(tmp_path, small):
    tensor = ("float32", (-1,))
    (tmp_path / "model.json").write_bytes(small.pir({"x": tensor}, {"y": tensor}))
    text = 'input { name: "x" dims: 1 reshape { } } output { name: "y" dims: 1 reshape { } }'
    config = config_of(f"max_batch_size: 4 {text}")

    assert check_version(config, tmp_path, backend)
    assert [list(io.dims) for io in (*config.input, *config.output)] == [[1], [1]]


@pytest.mark.parametrize(("shape", "batch"), [((-1,), 2), ((), 0)])
def test_any_size_is_not_the_one_element_of_a_scalar(tmp_path, small, shape, batch):
    tensor = ("float32", shape)
    (tmp_path / "model.json").write_bytes(small.pir({"x": tensor}, {"y": tensor}))
    text = f"max_batch_size: {batch} "
    entry = 'input {{ name: "x" data_type: TYPE_FP32 dims: [ {} ] }}'

    check_version(config_of(text + entry.format(1)), tmp_path, backend)
    with pytest.raises(CoreError, match=r"'x': the model has dims \[1\], the configuration \[-1\]"):
        check_version(config_of(text + entry.format(-1)), tmp_path, backend)


@pytest.mark.parametrize(
    ("there", "found"),
    [
        (["model.pdmodel", "inference.json", "inference.pdmodel"], "model.pdmodel"),
        (["inference.pdmodel", "inference.json"], "inference.json"),
        (["model.json", "__model__"], "model.json"),
        (["__model__"], "__model__"),
    ],
)
def test_the_first_of_the_known_names_is_the_program(tmp_path, small, there, found):
    for name in there:
        write = small.pir if name.endswith(".json") else small.program_desc
        (tmp_path / name).write_bytes(write({"x": FLOATS}, {"y": FLOATS}))

    assert read(tmp_path).files.program.name == found


@pytest.mark.parametrize(
    ("name", "weights"),
    [("net.pdmodel", "net.pdiparams"), ("net", "net.pdiparams"), ("__model__", "__params__")],
)
def test_the_name_of_the_weights_follows_from_that_of_the_program(tmp_path, small, name, weights):
    (tmp_path / name).write_bytes(small.program_desc({"x": FLOATS}, {"y": FLOATS}))

    found = read(tmp_path, f'default_model_filename: "{name}"')

    assert found.files.weights.name == weights


def test_missing_files_are_errors_with_those_that_are_there(version):
    (version / "model.pdiparams").rename(version / "other.pdiparams")
    with pytest.raises(CoreError, match=r"unable to find '.*model.pdiparams'.*other.pdiparams"):
        read(version)
    (version / "model.pdmodel").unlink()
    with pytest.raises(CoreError, match=r"unable to find '.*model.pdmodel' for model 'm'"):
        read(version)


@pytest.mark.parametrize(
    ("file", "content", "text"),
    [
        ("model.pdmodel", b"", "it is empty"),
        ("model.pdmodel", b"garbage" * 50, "Error parsing message|Truncated|Wrong wire"),
        ("model.pdmodel", b'{"base_code":1}', "wants a name that ends with .json"),
        ("inference.json", b"{", "it is no JSON"),
        ("inference.json", b"[" * 100_000, "it is no JSON"),
        ("inference.json", b"{}", "it is JSON, but no program of Paddle"),
        (
            "inference.json",
            b'{"base_code": {"magic": "x"}}',
            "it is JSON, but no program of Paddle",
        ),
        ("inference.json", b"\xff\xfe", "it is no JSON"),
    ],
)
def test_a_file_of_another_format_is_an_error(tmp_path, file, content, text):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(CoreError, match=rf"cannot load '.*{file}': it is damaged.*({text})"):
        read(tmp_path)


@pytest.mark.parametrize("written", ["program_desc", "pir"])
def test_a_program_for_training_has_no_outputs(tmp_path, small, written):
    content = getattr(small, written)({"x": FLOATS}, {})
    (tmp_path / ("model.pdmodel" if written == "program_desc" else "model.json")).write_bytes(
        content
    )

    with pytest.raises(
        CoreError, match=r"no outputs; export it for inference, with paddle.jit.save"
    ):
        read(tmp_path)


def test_a_value_that_no_operator_gives_is_an_error(tmp_path, small):
    content = json.loads(small.pir({"x": FLOATS}, {"y": FLOATS}))
    content["program"]["regions"][0]["blocks"][0]["ops"][-1]["I"][0]["%"] = 77
    (tmp_path / "model.json").write_text(json.dumps(content))

    with pytest.raises(CoreError, match=r"'1.fetch' takes a value that no other gives"):
        read(tmp_path)


@pytest.mark.parametrize("written", ["program_desc", "pir"])
def test_every_truncated_program_is_an_error_or_lacks_nothing(tmp_path, small, written):
    good = getattr(small, written)({"x": FLOATS}, {"y": FLOATS}, {"w": ("float32", (3,))})
    file = tmp_path / ("model.pdmodel" if written == "program_desc" else "model.json")
    file.with_suffix(".pdiparams").write_bytes(small.weights_file(np.zeros(3, np.float32)))
    for length in range(len(good)):
        file.write_bytes(good[:length])
        with pytest.raises(CoreError):
            read(tmp_path)


@pytest.mark.parametrize("dim", [1e999, 1e30])
def test_dims_that_no_number_of_64_bits_holds_are_an_error(tmp_path, small, dim):
    content = small.pir({"x": ("float32", (-1, dim))}, {"y": FLOATS})
    (tmp_path / "inference.json").write_bytes(content)

    with pytest.raises(CoreError, match=r"cannot load '.*json': it is damaged.*export it again"):
        complete(config_of(), tmp_path, backend)


def test_a_name_that_is_no_text_is_an_error(tmp_path, small):
    (tmp_path / "inference.json").write_bytes(small.pir({"\ud800": FLOATS}, {"y": FLOATS}))

    with pytest.raises(CoreError, match=r"cannot load '.*json': it is damaged.*export it again"):
        complete(config_of(), tmp_path, backend)


@pytest.mark.parametrize("seed", range(3))
def test_changed_bytes_are_read_or_an_error(version, seed):
    chance = random.Random(seed)
    for name in ("model.pdiparams", "model.pdmodel"):
        good = (version / name).read_bytes()
        for _ in range(200):
            content = bytearray(good)
            content[chance.randrange(len(content))] = chance.randrange(256)
            (version / name).write_bytes(content)
            try:
                read(version)
            except CoreError as error:
                assert name in error.message or "model.pdiparams" in error.message
        (version / name).write_bytes(good)


def test_a_configuration_is_completed_from_the_files(version, caplog):
    config = config_of()

    complete(config, version, backend)

    assert config.max_batch_size == 4 and config.HasField("dynamic_batching")
    assert [(io.name, list(io.dims)) for io in config.input] == [("x", [3])]
    assert [(io.name, list(io.dims)) for io in config.output] == [("y", [2])]
    assert "autofilled max_batch_size to 4" in caplog.text


def test_tensors_without_an_open_first_dimension_get_no_batches(tmp_path, small):
    content = small.pir({"x": ("float32", (1, 3))}, {"y": ("float32", ())})
    (tmp_path / "inference.json").write_bytes(content)
    config = config_of()

    complete(config, tmp_path, backend)

    assert config.max_batch_size == 0 and list(config.input[0].dims) == [1, 3]
    assert list(config.output[0].dims) == [1]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('input { name: "z" }', "unexpected inference input 'z', allowed inputs are: x"),
        ('output { name: "z" }', "unexpected inference output 'z', allowed outputs are: y"),
        (
            'input { name: "x" data_type: TYPE_INT32 dims: [ 3 ] }',
            "expects datatype TYPE_INT32 for 'x', model provides TYPE_FP32",
        ),
        (
            'input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }',
            r"tensor 'x': the model has dims \[3\], the configuration \[4\]",
        ),
        ('input { name: "x" optional: true }', "'optional' of input 'x' is not for Paddle models"),
        ('parameters { key: "cpu_threads" value { string_value: "0" } }', "expected 'cpu_threads'"),
    ],
)
def test_what_contradicts_the_files_is_an_error_of_a_check(version, text, error):
    with pytest.raises(CoreError, match=error):
        check_version(config_of(f"max_batch_size: 4 {text}"), version, backend)


STATE = 'sequence_batching { state { input_name: "before" output_name: "after" %s } }'
CONTROL = 'sequence_batching { control_input { name: "start" control { %s } } }'


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (STATE % "data_type: TYPE_FP32 dims: [ 3 ]", None),
        (STATE % "data_type: TYPE_FP32 dims: [ -1 ]", None),
        (
            STATE % "data_type: TYPE_FP64 dims: [ 3 ]",
            "expects datatype TYPE_FP64 for 'before', model provides TYPE_FP32",
        ),
        (
            STATE % "data_type: TYPE_FP32 dims: [ 4 ]",
            r"tensor 'before': the model has dims \[3\], the configuration \[4\]",
        ),
        (
            STATE % "data_type: TYPE_FP32",
            r"'before': the model has dims \[3\], the configuration \[\]",
        ),
        (CONTROL % "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]", None),
        (CONTROL % "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32", None),
        (CONTROL % "kind: CONTROL_SEQUENCE_CORRID", None),
        (
            CONTROL % "kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ]",
            "expects datatype TYPE_FP32 for 'start', model provides TYPE_INT32",
        ),
        (
            CONTROL % "kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ]",
            "expects datatype TYPE_BOOL for 'start', model provides TYPE_INT32",
        ),
        (
            CONTROL % "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64",
            "expects datatype TYPE_UINT64 for 'start', model provides TYPE_INT32",
        ),
    ],
)
def test_states_and_controls_are_compared_with_the_file(tmp_path, small, config, error):
    extra = {"before": FLOATS} if "state" in config else {"start": ("int32", (-1, 1))}
    content = small.pir({"x": FLOATS, **extra}, {"y": FLOATS, "after": FLOATS})
    (tmp_path / "inference.json").write_bytes(content)
    with pytest.raises(CoreError, match=error) if error else nullcontext():
        assert check_version(config_of(f"max_batch_size: 4 {config}"), tmp_path, backend)


def test_a_batch_needs_open_dimensions(tmp_path, small):
    content = small.program_desc({"x": ("float32", (1, 3))}, {"y": FLOATS})
    (tmp_path / "model.pdmodel").write_bytes(content)

    with pytest.raises(CoreError, match=r"max_batch_size is 4, .* is not open \('x' \[1, 3\]\)"):
        check_version(config_of("max_batch_size: 4"), tmp_path, backend)


def test_a_datatype_that_paddle_does_not_exchange_is_an_error(tmp_path, small):
    content = small.pir({"x": ("bfloat16", (-1, 3))}, {"y": FLOATS})
    (tmp_path / "inference.json").write_bytes(content)

    with pytest.raises(CoreError, match="'x' is of type bfloat16, which Paddle Inference neither"):
        check_version(config_of(), tmp_path, backend)


def test_an_operator_names_only_tensors_that_are_there(small):
    """Paddle 3.3 ends the process otherwise."""
    message = ProgramDesc()
    message.ParseFromString(small.program_desc({"x": FLOATS}, {"y": FLOATS}))
    op = message.blocks[0].ops.add(type="relu")
    op.inputs.add(parameter="X", arguments=["x"])
    op.outputs.add(parameter="Mask", arguments=["@EMPTY@"])  # left out
    assert read_program_desc(message.SerializeToString()).ports.inputs

    op.outputs.add(parameter="Out", arguments=["z"])
    with pytest.raises(ValueError, match="'relu' names the tensor 'z', which it does not describe"):
        read_program_desc(message.SerializeToString())
