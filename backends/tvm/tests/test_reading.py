"""What the files of a version say, without TVM: functions, types, weights, and the errors for files."""

import random
import time
from pathlib import Path

import numpy as np
import pytest
from backend_tvm import backend
from backend_tvm.reading import read_model
from backend_tvm.settings import settings_of
from backend_tvm.static_check import check_version

from core.config import parse_text
from core.errors import CoreError


def config_of(text=""):
    return parse_text(f'name: "m" {text}', "config.pbtxt")


def read(folder, text=""):
    config = config_of(text)
    return read_model(config, folder, settings_of(config))


def parameter(name, value):
    return f"parameters {{ key: '{name}' value {{ string_value: '{value}' }} }}"


def test_a_hostile_text_of_an_argument_is_read_at_once(tmp_path, small):
    text = "ErrorContext(fn=" + ", loc=param[1], param=" * 4000 + "x"
    texts = "ErrorContext(fn=" * 4000
    body = small.executable({"main": ["x"]}, [text, texts]) + bytes(8) + b"ErrorContext(fn="
    (tmp_path / "model.so").write_bytes(small.library(body))
    started = time.process_time()

    with pytest.raises(CoreError, match="no type of parameter 'x'"):
        read(tmp_path)

    assert time.process_time() - started < 1


def test_parameters_with_weights_are_no_inputs(version):
    found = read(version)

    assert found.function == "main" and found.parameters == ("x", "w")
    assert list(found.ports.inputs) == ["x"] and list(found.ports.outputs) == ["output0"]
    assert list(found.weights) == ["w"]
    assert found.ports.batches


def test_without_the_file_of_weights_all_are_inputs(version):
    (version / "model.params").unlink()

    found = read(version)

    assert list(found.ports.inputs) == ["x", "w"] and not found.ports.batches


def test_names_of_the_configuration(version):
    found = read(version, parameter("inputs", "features") + parameter("outputs", "scores"))

    assert list(found.ports.inputs) == ["features"] and list(found.ports.outputs) == ["scores"]


def test_another_number_of_names_is_an_error(version):
    with pytest.raises(CoreError, match="'outputs' has 2 names, the function has 1: output0"):
        read(version, parameter("outputs", "a,b"))


def functions(small, folder, **names):
    contexts = [
        small.parameter(name, 0, "x", 'R.Tensor((2,), dtype="float32")')
        for name in names
        if names[name]
    ]
    (folder / "model.so").write_bytes(small.library(small.executable(names, contexts)))


def test_the_only_function_answers(tmp_path, small):
    functions(small, tmp_path, forward=["x"], _helper=["x"], add=None)

    assert read(tmp_path).function == "forward"


def test_one_of_several_functions_is_named(tmp_path, small):
    functions(small, tmp_path, encode=["x"], decode=["x"])

    assert read(tmp_path, parameter("function", "decode")).function == "decode"
    with pytest.raises(CoreError, match="no function 'main', but encode, decode; name one with"):
        read(tmp_path)
    with pytest.raises(CoreError, match="no function 'x', only encode, decode"):
        read(tmp_path, parameter("function", "x"))


def test_a_parameter_that_is_no_tensor_is_refused(tmp_path, small):
    contexts = [small.parameter("main", 0, "size", "R.Shape([n])")]
    body = small.executable({"main": ["size"]}, contexts)
    (tmp_path / "model.so").write_bytes(small.library(body))

    with pytest.raises(
        CoreError, match=r"parameter 'size' is R.Shape\(\[n\]\), which is no tensor"
    ):
        read(tmp_path)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.ones((3, 3), np.float32), r"float32\[3, 3\], the function takes float32\[3, 2\]"),
        (np.ones((3, 2), np.int32), r"int32\[3, 2\], the function takes float32\[3, 2\]"),
    ],
)
def test_weights_of_another_export_are_an_error(version, small, array, text):
    (version / "model.params").write_bytes(small.params(w=array))

    with pytest.raises(CoreError, match=text):
        read(version)


def test_a_parameter_without_a_type_needs_weights(tmp_path, small):
    contexts = [small.parameter("main", 0, "x", 'R.Tensor((n, 3), dtype="float32")')]
    body = small.executable({"main": ["x", "layer.weight"]}, contexts)
    (tmp_path / "model.so").write_bytes(small.library(body))

    with pytest.raises(
        CoreError, match=r"no type of parameter 'layer\.weight'; if these are weights"
    ):
        read(tmp_path)

    (tmp_path / "model.params").write_bytes(small.params(**{"layer.weight": np.ones(2)}))
    assert list(read(tmp_path).ports.inputs) == ["x"]


def test_weights_that_the_function_does_not_take_are_an_error(version, small):
    (version / "model.params").write_bytes(small.params(v=np.ones(2, np.float32)))

    with pytest.raises(
        CoreError, match="has weights 'v', but the function has only the parameters"
    ):
        read(version)


def test_a_missing_file_is_an_error_with_the_existing_files(tmp_path):
    (tmp_path / "deploy_graph.json").touch()

    with pytest.raises(CoreError, match=r"unable to find '.*model.so'.*deploy_graph.json"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"__tvm_dev_mblob\0tvmgen_default_fused_add", "graph executor or Relay's virtual machine"),
        (b"__tvm_ffi__library_bin\0__tvm_ffi_main", "TensorIR without a Relax executable"),
        (b"PyInit_numpy", "no module of TVM"),
    ],
)
def test_libraries_of_other_kinds_are_refused_by_name(tmp_path, small, body, text):
    (tmp_path / "model.so").write_bytes(small.library(body))

    with pytest.raises(CoreError, match=text):
        read(tmp_path)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kind": 1}, "an object file, not a shared library"),
        ({"machine": 9}, "for a machine with the number 9, this machine is"),
    ],
)
def test_libraries_that_the_linker_would_not_load(tmp_path, small, options, text):
    (tmp_path / "model.so").write_bytes(small.library(b"", **options))

    with pytest.raises(CoreError, match=text):
        read(tmp_path)


@pytest.mark.parametrize(("name", "content"), [("a.tar", b"ustar"), ("mod.json", b"{}")])
def test_other_files_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)

    with pytest.raises(CoreError, match="is no shared library; write it with export_library"):
        read(tmp_path, f'default_model_filename: "{name}"')


def test_every_truncated_module_is_an_error_that_names_it(version):
    good = (version / "model.so").read_bytes()
    for size in range(len(good)):
        (version / "model.so").write_bytes(good[:size])
        with pytest.raises(CoreError, match=r"model 'm': cannot load '.*model.so': it is "):
            read(version)


def test_changed_bytes_raise_nothing_but_core_errors(version):
    chance, file = random.Random(1), version / "model.so"
    good = file.read_bytes()
    for _ in range(500):
        content = bytearray(good)
        content[chance.randrange(len(content))] = chance.randrange(256)
        file.write_bytes(content)
        try:
            read(version)
        except CoreError:
            pass


def test_completion_and_check_need_no_tvm(version):
    config = config_of()

    assert check_version(config, version, backend)

    assert config.max_batch_size == 4 and config.HasField("dynamic_batching")
    assert [(io.name, list(io.dims)) for io in config.input] == [("x", [3])]
    assert [(io.name, list(io.dims)) for io in config.output] == [("output0", [2])]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('input { name: "z" }', "unexpected inference input 'z', allowed inputs are: x"),
        (
            'input { name: "x" data_type: TYPE_INT32 dims: [ 3 ] }',
            "expects datatype TYPE_INT32 for 'x', model provides TYPE_FP32",
        ),
        (
            'input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }',
            r"tensor 'x': the model has dims \[3\], the configuration \[4\]",
        ),
        ('output { name: "y" }', "unexpected inference output 'y', allowed outputs are: output0"),
        ('input { name: "x" optional: true }', "'optional' of input 'x' is not for TVM models"),
    ],
)
def test_what_contradicts_the_module_is_an_error_of_a_check(version, text, error):
    with pytest.raises(CoreError, match=error):
        check_version(config_of(text), version, backend)


@pytest.mark.parametrize(
    "entry",
    [
        'input { name: "x" dims: [ -1, 3 ] }',
        'input { name: "x" dims: [ 8, 3 ] }',
        'output { name: "output0" dims: [ -1, 2 ] }',
    ],
)
def test_dims_with_the_batch_are_for_a_model_without_max_batch_size(version, entry):
    config = config_of(entry)

    check_version(config, version, backend)

    assert not config.max_batch_size and not config.HasField("dynamic_batching")
    assert [len(io.dims) for io in (*config.input, *config.output)] == [2, 2]


def test_dims_without_the_batch_leave_it_to_the_completion(version):
    config = config_of('input { name: "x" dims: [ 3 ] }')

    assert check_version(config, version, backend)
    assert config.max_batch_size == 4


@pytest.mark.parametrize(("rank", "batch"), [("b,", 2), ("", 0)])
def test_any_size_is_not_the_one_element_of_a_scalar(tmp_path, small, rank, batch):
    annotation = f'R.Tensor(({rank}), dtype="float32")'
    contexts = [small.parameter("main", 0, "x", annotation), small.result("main", annotation)]
    (tmp_path / "model.so").write_bytes(small.library(small.executable({"main": ["x"]}, contexts)))
    text = 'max_batch_size: {} input {{ name: "x" data_type: TYPE_FP32 dims: [ {} ] }}'

    check_version(config_of(text.format(batch, 1)), tmp_path, backend)
    with pytest.raises(CoreError, match=r"'x': the model has dims \[1\], the configuration \[-1\]"):
        check_version(
            config_of(
                text.format(batch, -1)
                + 'output { name: "output0" data_type: TYPE_FP32 dims: [ 1 ] }'
            ),
            tmp_path,
            backend,
        )


def test_rows_without_dims_may_be_so_in_the_configuration(tmp_path, small):
    annotation = 'R.Tensor((b,), dtype="float32")'
    contexts = [small.parameter("main", 0, "x", annotation), small.result("main", annotation)]
    (tmp_path / "model.so").write_bytes(small.library(small.executable({"main": ["x"]}, contexts)))
    text = 'input { name: "x" dims: 1 reshape { } } output { name: "output0" dims: 1 reshape { } }'

    assert check_version(config_of(f"max_batch_size: 4 {text}"), tmp_path, backend)


def test_parameters_of_one_name_are_named_by_the_configuration(tmp_path, small):
    contexts = [
        small.parameter("main", place, "x", f'R.Tensor((2,), dtype="{dtype}")')
        for place, dtype in enumerate(("float32", "int64"))
    ]
    (tmp_path / "model.so").write_bytes(
        small.library(small.executable({"main": ["x", "x"]}, contexts))
    )

    with pytest.raises(
        CoreError, match="two parameters of function 'main' have the name 'x'; name the inputs with"
    ):
        read(tmp_path)
    ports = read(tmp_path, parameter("inputs", "a,b")).ports
    assert {name: port.type for name, port in ports.inputs.items()} == {
        "a": "float32",
        "b": "int64",
    }


def test_fixed_shapes_have_no_batches(tmp_path, small):
    functions(small, tmp_path, main=["x"])

    with pytest.raises(CoreError, match=r"begin with the same variable dimension.*'x' \[2\]"):
        check_version(config_of("max_batch_size: 2"), tmp_path, backend)


def test_outputs_that_only_a_run_shows_are_no_error_of_a_check(tmp_path, small):
    functions(small, tmp_path, main=["x"])
    config = config_of()

    assert not check_version(config, tmp_path, backend)
    assert [io.name for io in config.input] == ["x"] and not config.output


def test_the_library_of_an_interpreter_is_refused(tmp_path):
    (tmp_path / "model.so").symlink_to(Path(np._core._multiarray_umath.__file__))

    with pytest.raises(CoreError, match="no module of TVM"):
        read(tmp_path)
