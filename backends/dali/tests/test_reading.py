"""What a serialized pipeline says, without DALI, and the errors for files and configurations."""

import random

import pytest
from backend_dali import backend
from backend_dali.check import check_device
from backend_dali.reading import model_file, read_model
from backend_dali.settings import settings_of
from backend_dali.static_check import check_version

from core.config import parse_text
from core.errors import CoreError

FRAMES = {"frames": (0, 4), "boxes": (9, None)}


def config_of(text=""):
    return parse_text(f'name: "m" {text}', "config.pbtxt")


def read(folder, text=""):
    config = config_of(text)
    return read_model(config, folder, settings_of(config))


def split(value):
    return f"parameters {{ key: 'split_along_outer_axis' value {{ string_value: '{value}' }} }}"


def test_completion_and_check_need_no_dali(version):
    config = config_of()

    assert check_version(config, version, backend)

    assert config.max_batch_size == 8 and config.HasField("dynamic_batching")
    assert [(io.name, list(io.dims)) for io in config.input] == [("encoded", [-1])]
    assert [(io.name, list(io.dims)) for io in config.output] == [("pixels", [-1, -1, -1])]


def test_a_batch_size_of_the_configuration_counts(version):
    config = config_of("max_batch_size: 32")

    assert check_version(config, version, backend)
    assert config.max_batch_size == 32


def test_outputs_have_the_names_of_the_configuration_in_order(version, small):
    content = small({"a": (0, 1)}, {"__Cast_1": (9, 1), "__Cast_2": (6, 2)})
    (version / "model.dali").write_bytes(content)

    ports = read(version, 'output { name: "first" } output { name: "second" }').ports

    assert {name: port.ndim for name, port in ports.outputs.items()} == {"first": 1, "second": 2}


def test_names_of_the_pipeline_decide_before_the_order(version, small):
    (version / "model.dali").write_bytes(small({"a": (0, 1)}, {"x": (9, 1), "y": (6, 2)}))

    ports = read(version, 'output { name: "y" } output { name: "x" }').ports

    assert {name: port.ndim for name, port in ports.outputs.items()} == {"x": 1, "y": 2}


def test_another_number_of_outputs_is_an_error_with_both(version):
    with pytest.raises(
        CoreError, match=r"has 2 outputs \(A, B\), the pipeline 1 \(pixels\); name each"
    ):
        read(version, 'output { name: "A" } output { name: "B" }')


def test_a_split_output_has_one_dimension_less(version, small):
    (version / "model.dali").write_bytes(small({"a": (0, 1)}, FRAMES))

    ports = read(version, split("frames")).ports

    assert ports.outputs["frames"].ndim == 3 and ports.outputs["boxes"].ndim is None
    with pytest.raises(CoreError, match="names z, the outputs are frames, boxes"):
        read(version, split("frames:z"))


def test_any_size_is_not_the_one_element_of_a_sample_without_dims(version, small):
    (version / "model.dali").write_bytes(small({"a": (9, 0)}, {"y": (9, 0)}))
    text = 'input {{ name: "a" data_type: TYPE_FP32 dims: [ {} ] }}'

    check_version(config_of(text.format(1)), version, backend)
    with pytest.raises(CoreError, match=r"'a': its samples have no dims .* found \[-1\]"):
        check_version(config_of(text.format(-1)), version, backend)


def test_an_output_without_dims_cannot_be_split(version, small):
    (version / "model.dali").write_bytes(small({"a": (0, 1)}, {"y": (9, 0)}))

    with pytest.raises(CoreError, match=r"samples of output 'y' have no dims, .* remove 'y' from"):
        read(version, split("y"))


@pytest.mark.parametrize(
    ("inputs", "outputs", "error"),
    [
        ({"a": (None, 1)}, {"y": (9, 1)}, "the data_type of input 'a'; give dtype and ndim to"),
        ({"a": (0, None)}, {"y": (9, 1)}, "the dims of input 'a'; give dtype and ndim to"),
        ({"a": (0, 1)}, {"y": (-1, 1)}, "the data_type of output 'y'; give output_dtype"),
        ({"a": (0, 1)}, {"y": (9, -1)}, "the dims of output 'y'; give output_dtype"),
    ],
)
def test_what_a_pipeline_does_not_say_is_an_error_with_the_remedy(
    version, small, inputs, outputs, error
):
    (version / "model.dali").write_bytes(small(inputs, outputs))

    with pytest.raises(CoreError, match=f"the pipeline does not say {error}"):
        check_version(config_of(), version, backend)


def test_the_configuration_says_what_a_pipeline_does_not(version, small):
    (version / "model.dali").write_bytes(small({"a": (None, None)}, {"y": (-1, -1)}))
    config = config_of(
        'input { name: "a" data_type: TYPE_UINT8 dims: [ -1 ] }'
        'output { name: "y" data_type: TYPE_FP32 dims: [ 3 ] }'
    )

    assert check_version(config, version, backend)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('input { name: "z" }', "unexpected inference input 'z', allowed inputs are: encoded"),
        (
            'input { name: "encoded" data_type: TYPE_INT32 dims: [ 3 ] }',
            "expects datatype TYPE_INT32 for 'encoded', model provides TYPE_UINT8",
        ),
        (
            'input { name: "encoded" data_type: TYPE_UINT8 dims: [ 3, 3 ] }',
            r"tensor 'encoded': the pipeline has 1 dims, the configuration \[3, 3\]",
        ),
        (
            'input { name: "encoded" data_type: TYPE_STRING dims: [ 1 ] }',
            "'encoded' is TYPE_STRING, which DALI lacks; give bytes as TYPE_UINT8",
        ),
        ('input { name: "encoded" optional: true }', "'optional' of input 'encoded' is not for"),
        ("model_transaction_policy { decoupled: true }", "gives one response to a request"),
    ],
)
def test_what_contradicts_the_pipeline_is_an_error_of_a_check(version, text, error):
    with pytest.raises(CoreError, match=error):
        check_version(config_of(text), version, backend)


def test_a_pipeline_without_an_external_source_is_refused(version, small):
    (version / "model.dali").write_bytes(small({}, {"y": (9, 1)}))

    with pytest.raises(CoreError, match="has no external_source"):
        check_version(config_of(), version, backend)


@pytest.mark.parametrize("device", ["gpu", "mixed"])
def test_operators_for_gpus_on_a_cpu_are_refused_by_name(version, small, device):
    content = small({"a": (0, 1)}, {"y": (9, 1)}, device=device)
    (version / "model.dali").write_bytes(content)
    found = read(version)

    check_device(config_of(), found, "GPU")
    with pytest.raises(
        CoreError, match=r"runs decoders\.image on a GPU, the instance has KIND_CPU"
    ):
        check_device(config_of(), found, "CPU")


def test_model_dali_comes_before_the_python_file(version):
    (version / "dali.py").touch()

    assert model_file(config_of(), version).name == "model.dali"
    (version / "model.dali").unlink()
    assert model_file(config_of(), version).name == "dali.py"
    assert not check_version(config_of(), version, backend)  # it is not run


def test_another_file_is_named(version):
    (version / "other.py").touch()

    config = config_of('default_model_filename: "other.py"')
    assert model_file(config, version).name == "other.py"


def test_a_missing_file_is_an_error_with_the_existing_files(tmp_path):
    (tmp_path / "pipe.py").touch()

    with pytest.raises(CoreError, match=r"unable to find '.*model\.dali'.*pipe\.py"):
        read(tmp_path)


@pytest.mark.parametrize("content", [b"", b"garbage" * 100, b"\x08\x01\x10\x04"])
def test_a_file_of_another_format_is_an_error(tmp_path, content):
    (tmp_path / "model.dali").write_bytes(content)

    with pytest.raises(CoreError, match=r"cannot load '.*model\.dali': it .*serialized pipeline"):
        read(tmp_path)


def test_truncated_and_changed_files_raise_nothing_but_core_errors(version):
    chance, file = random.Random(1), version / "model.dali"
    good = file.read_bytes()
    contents = [good[:size] for size in range(len(good))]
    for _ in range(500):
        content = bytearray(good)
        content[chance.randrange(len(content))] = chance.randrange(256)
        contents.append(bytes(content))
    for content in contents:
        file.write_bytes(content)
        try:
            check_version(config_of(), version, backend)
        except CoreError:
            pass


@pytest.mark.parametrize(
    ("inputs", "outputs", "rows", "error"),
    [
        ({"a": (0, 1 << 40)}, {"y": (9, 1)}, 8, "'a' has 1099511627776 dims, expected .* 0 to 64"),
        ({"a": (0, -2)}, {"y": (9, 1)}, 8, "'a' has -2 dims, expected a number from 0 to 64"),
        ({"a": (0, 1)}, {"y": (9, 65)}, 8, "'y' has 65 dims, expected a number from 0 to 64"),
        ({"a": (0, 1)}, {"y": (9, 1)}, 1 << 31, "batch size is 2147483648, expected .* 2147483647"),
        ({"a": (0, 1)}, {"y": (9, 1)}, -3, "batch size is -3, expected a number from 1 to"),
    ],
)
def test_numbers_that_no_pipeline_has_are_an_error(version, small, inputs, outputs, rows, error):
    (version / "model.dali").write_bytes(small(inputs, outputs, rows))

    with pytest.raises(CoreError, match=error):
        check_version(config_of(), version, backend)


def test_two_outputs_of_one_name_are_an_error(version, small):
    twice = small({"a": (0, 1)}, {"y": (9, 1)}) + b"\x3a\x08\x0a\x01y\x12\x03cpu"
    (version / "model.dali").write_bytes(twice)

    with pytest.raises(CoreError, match=r"two of its outputs have one name \(y, y\)"):
        read(version)
