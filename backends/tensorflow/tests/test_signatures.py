"""Signatures of saved_model.pb, completion and checks, without TensorFlow."""

import subprocess
import sys
from contextlib import nullcontext

import pytest
from backend_tensorflow import backend
from backend_tensorflow.files import model_files
from backend_tensorflow.messages import SavedModel
from backend_tensorflow.saved_model import read_signature
from backend_tensorflow.settings import Settings
from backend_tensorflow.static_check import check_version

from core.config import parse_text
from core.errors import CoreError

FLOAT, INT32, STRING, COMPLEX, INT64 = 1, 3, 7, 8, 9


def config_of(text):
    return parse_text(f'name: "m" {text}', "config.pbtxt")


def describe(info, dtype, dims):
    """Write datatype and dims into a TensorInfo; None for any number of dimensions."""
    info.dtype = dtype
    if dims is None:
        info.tensor_shape.unknown_rank = True
    for each in dims or ():
        info.tensor_shape.dim.add(size=each)


def written(folder, signatures, tags=("serve",), message=None):
    """Write saved_model.pb into `folder`; return its message.

    signatures   key → (inputs, outputs): name → (number of a datatype, dims)
    message      a SavedModel to which the graph is added
    """
    message = message or SavedModel()
    graph = message.meta_graphs.add()
    graph.meta_info_def.tags.extend(tags)
    for key, both in signatures.items():
        for entries, field in zip(both, ("inputs", "outputs"), strict=True):
            for name, (dtype, dims) in entries.items():
                info = getattr(graph.signature_def[key], field)[name]
                info.name = f"{key}_{name}:0"
                describe(info, dtype, dims)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_bytes(message.SerializeToString())
    return message


ROWS = {"x": (FLOAT, (-1, 3))}, {"y": (STRING, (-1,))}


def ports_of(folder, **settings):
    return read_signature(folder, Settings(**settings), "m").ports


def checked(tmp_path, signature, text=""):
    """Return the configuration that a check completes."""
    written(tmp_path / "model.savedmodel", {"serving_default": signature})
    config = config_of(text)
    check_version(config, tmp_path, backend)
    return config


def test_names_datatypes_and_dims(tmp_path):
    config = checked(tmp_path, ROWS)

    assert config.max_batch_size == 4
    assert config.WhichOneof("scheduling_choice") == "dynamic_batching"
    (x,), (y,) = config.input, config.output
    assert (x.name, list(x.dims), y.name, list(y.dims)) == ("x", [3], "y", [1])
    assert not x.HasField("reshape")
    assert y.HasField("reshape") and not y.reshape.shape


CLASSIFY = "tensorflow/serving/classify"
DESCRIBED = """
input { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] }
output { name: "y" data_type: TYPE_STRING dims: [ -1 ] }"""
OWN = 'parameters { key: "TF_METHOD_NAME" value { string_value: "own" } }'


@pytest.mark.parametrize(
    ("method", "text", "expected"),
    [
        (CLASSIFY, "", CLASSIFY),
        (CLASSIFY, f"{DESCRIBED} dynamic_batching {{ }}", CLASSIFY),
        (CLASSIFY, OWN, "own"),
        ("tensorflow/serving/predict", "", None),
        ("", "", None),
    ],
)
def test_the_method_of_the_signature_becomes_a_parameter(tmp_path, method, text, expected):
    folder = tmp_path / "model.savedmodel"
    message = written(folder, {"serving_default": ROWS})
    message.meta_graphs[0].signature_def["serving_default"].method_name = method
    (folder / "saved_model.pb").write_bytes(message.SerializeToString())
    config = config_of(text)

    backend.complete(config, tmp_path, backend)

    found = config.parameters.get("TF_METHOD_NAME")
    assert (found and found.string_value) == expected


def test_a_fixed_first_dimension_is_no_batch(tmp_path):
    config = checked(tmp_path, ({"x": (FLOAT, (2, 3))}, {"y": (INT32, ())}))

    assert config.max_batch_size == 0
    assert (list(config.input[0].dims), list(config.output[0].dims)) == ([2, 3], [1])


def test_a_vector_that_may_split_rows_is_no_batch(tmp_path):
    ragged = {"x": (FLOAT, (-1,)), "x_1": (INT64, (-1,))}, {"y": (FLOAT, (-1,))}
    assert checked(tmp_path, ragged).max_batch_size == 0

    other = {"x": (FLOAT, (-1,)), "x_1": (INT32, (-1,))}, {"y": (FLOAT, (-1,))}
    assert checked(tmp_path, other).max_batch_size == 4


@pytest.mark.parametrize("key", ["", "two"])
def test_the_signature_is_the_named_one_or_the_only_one(tmp_path, key):
    signatures = {"two": ROWS, "__saved_model_init_op": ({}, {"op": (0, None)})}
    if key:
        signatures["one"] = {"a": (FLOAT, (1,))}, {}
    written(tmp_path, signatures)

    assert [port.tensor for port in ports_of(tmp_path, signature=key).all] == ["two_x:0", "two_y:0"]


def test_serving_default_is_the_default(tmp_path):
    written(tmp_path, {"other": ({}, {}), "serving_default": ROWS})

    assert list(ports_of(tmp_path).inputs) == ["x"]


@pytest.mark.parametrize(
    ("key", "text"),
    [("", "has 2 signatures; it has: a, b; name one"), ("c", "no signature 'c'; it has: a, b")],
)
def test_an_unknown_signature_is_an_error_with_those_that_there_are(tmp_path, key, text):
    written(tmp_path, {"a": ROWS, "b": ROWS})
    with pytest.raises(CoreError, match=text):
        ports_of(tmp_path, signature=key)


def test_the_graph_is_that_of_the_tags(tmp_path):
    message = written(tmp_path, {"serving_default": ROWS})
    other = {"z": (FLOAT, (1,))}, {}
    written(tmp_path, {"serving_default": other}, ("train", "gpu"), message)

    assert list(ports_of(tmp_path).inputs) == ["x"]
    assert list(ports_of(tmp_path, tags=("gpu", "train")).inputs) == ["z"]
    with pytest.raises(
        CoreError, match="exactly the tags train; it has graphs with: gpu, train; ser"
    ):
        ports_of(tmp_path, tags=("train",))


def test_the_only_graph_needs_no_tags(tmp_path):
    written(tmp_path, {"serving_default": ROWS}, tags=())

    assert read_signature(tmp_path, Settings(), "m").tags == ()


def test_components_of_ragged_and_sparse_tensors(tmp_path):
    message = written(tmp_path, {"serving_default": ({"x": (FLOAT, (1,))}, {})})
    outputs = message.meta_graphs[0].signature_def["serving_default"].outputs
    for name, dtype in (("values:0", STRING), ("splits:0", INT64)):
        part = outputs["ragged"].composite_tensor.components.add(name=name)
        describe(part, dtype, (-1,))
    sparse = outputs["sparse"]
    sparse.coo_sparse.values_tensor_name = "v:0"
    sparse.coo_sparse.indices_tensor_name = "i:0"
    sparse.coo_sparse.dense_shape_tensor_name = "s:0"
    describe(sparse, FLOAT, (-1, 5))
    (tmp_path / "saved_model.pb").write_bytes(message.SerializeToString())

    found = ports_of(tmp_path).outputs

    assert [(port.name, port.tensor, port.type, port.dims) for port in found.values()] == [
        ("ragged", "values:0", "string", (-1,)),
        ("ragged_1", "splits:0", "int64", (-1,)),
        ("sparse_indices", "i:0", "int64", (-1, 2)),
        ("sparse_values", "v:0", "float32", (-1,)),
        ("sparse_dense_shape", "s:0", "int64", (2,)),
    ]
    with pytest.raises(CoreError, match="a ragged or sparse tensor has no row for each request"):
        (tmp_path / "model.savedmodel").symlink_to(tmp_path)
        check_version(config_of("max_batch_size: 2"), tmp_path, backend)


@pytest.mark.parametrize("content", [b"", b"garbage" * 10, b"\x12\xff\xff\xff\xff\x0f"])
def test_a_damaged_file_is_an_error(tmp_path, content):
    (tmp_path / "saved_model.pb").write_bytes(content)
    with pytest.raises(
        CoreError, match=r"cannot load '.*saved_model.pb': .* copy or export it again"
    ):
        ports_of(tmp_path)


def test_a_pointer_of_git_lfs_is_an_error(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(CoreError, match="only a pointer of Git LFS"):
        ports_of(tmp_path)


@pytest.mark.parametrize(
    ("signature", "text", "error"),
    [
        (ROWS, 'input { name: "z" }', "unexpected inference input 'z', allowed inputs are: x"),
        (
            ROWS,
            'input { name: "x" data_type: TYPE_INT32 dims: [ 3 ] }',
            "expects datatype TYPE_INT32 for 'x', model provides TYPE_FP32",
        ),
        (
            ROWS,
            'max_batch_size: 2 input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }',
            r"tensor 'x': the model has dims \[3\], the configuration \[4\], both without",
        ),
        (
            ({"x": (FLOAT, (1, 3))}, {"y": (FLOAT, (-1, 3))}),
            "max_batch_size: 2",
            r"the first dimension of a tensor is not open \('x' \[1, 3\]\); set max_batch_size to 0",
        ),
        (
            ({"x": (FLOAT, (2,)), "z": (FLOAT, (2,))}, {"y": (FLOAT, (2,))}),
            'input { name: "x" }',
            "expects 1 inputs, model provides 2; config.pbtxt lacks z",
        ),
        (({"x": (COMPLEX, (2,))}, {}), "", "'x' is of type complex64, which cannot be sent"),
        (
            ({"x": (FLOAT, (2,))}, {}),
            'input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] optional: true }',
            "'optional' of input 'x' is not for TensorFlow models",
        ),
        (
            ROWS,
            'parameters { key: "TF_NUM_INTRA_THREADS" value { string_value: "x" } }',
            "whole number",
        ),
    ],
)
def test_what_contradicts_the_model_is_an_error_of_a_check(tmp_path, signature, text, error):
    with pytest.raises(CoreError, match=error):
        checked(tmp_path, signature, text)


@pytest.mark.parametrize(
    ("text", "batch"),
    [
        ('input { name: "x" dims: [ -1, 3 ] }', 0),
        ('output { name: "y" dims: [ 7 ] }', 0),
        ('output { name: "y" dims: [ 1 ] }', 4),
        ('batch_output { target_name: "y" } output { name: "y" dims: [ -1 ] }', 4),
    ],
)
def test_dims_with_the_batch_are_for_a_model_without_max_batch_size(tmp_path, text, batch):
    assert checked(tmp_path, ROWS, text).max_batch_size == batch


def test_rows_without_dims_have_one_element_in_any_form(tmp_path):
    rows = {"x": (FLOAT, (-1,))}, {"y": (FLOAT, (-1,))}

    for dims in ("dims: 1", "dims: 1 reshape { }", "dims: 1 reshape { shape: 1 }"):
        checked(tmp_path, rows, f'max_batch_size: 2 input {{ name: "x" {dims} }}')
    with pytest.raises(CoreError, match=r"'x': the model has dims \[1\], the configuration \[-1\]"):
        checked(tmp_path, rows, 'max_batch_size: 2 input { name: "x" dims: -1 }')


STATE = 'sequence_batching { state { input_name: "x" output_name: "y" data_type: %s dims: %s } }'
CONTROL = 'sequence_batching { control_input { name: "x" control { %s } } }'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (STATE % ("TYPE_FP32", "3"), None),
        (STATE % ("TYPE_FP32", "4"), r"'x': the model has dims \[3\], the configuration \[4\]"),
        (
            STATE % ("TYPE_FP64", "3"),
            "expects datatype TYPE_FP64 for 'x', model provides TYPE_FP32",
        ),
        (
            CONTROL % "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]",
            "expects datatype TYPE_INT32 for 'x', model provides TYPE_FP32",
        ),
        (
            CONTROL % "kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ]",
            r"'x': the model has dims \[3\], the configuration \[1\]",
        ),
    ],
)
def test_states_and_controls_are_compared_with_the_model(tmp_path, text, error):
    same = {"x": (FLOAT, (-1, 3))}, {"y": (FLOAT, (-1, 3))}
    with pytest.raises(CoreError, match=error) if error else nullcontext():
        checked(tmp_path, same, f"max_batch_size: 4 {text}")


def test_a_tensor_of_any_number_of_dimensions_is_taken_for_a_vector(tmp_path, caplog):
    config = checked(tmp_path, ({"x": (FLOAT, None)}, {"y": (FLOAT, None)}))

    assert (list(config.input[0].dims), list(config.output[0].dims)) == ([-1], [-1])
    assert config.max_batch_size == 0
    assert "model 'm' does not say how many dimensions 'x' has; it is taken for" in caplog.text


def test_a_tensor_of_any_number_of_dimensions_has_those_of_the_configuration(tmp_path):
    described = """input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }"""

    config = checked(tmp_path, ({"x": (FLOAT, None)}, {"y": (FLOAT, None)}), described)

    assert list(config.input[0].dims) == [2]


def test_where_the_files_of_a_version_are(tmp_path):
    config = config_of('backend: "tensorflow"')
    (tmp_path / "model.graphdef").touch()
    assert model_files(config, tmp_path) == (tmp_path / "model.graphdef", False)
    written(tmp_path / "model.savedmodel", {})
    assert model_files(config, tmp_path) == (tmp_path / "model.savedmodel", True)
    config.platform = "tensorflow_graphdef"
    assert model_files(config, tmp_path) == (tmp_path / "model.graphdef", False)
    written(tmp_path / "2", {})
    config.platform, config.default_model_filename = "tensorflow_savedmodel", "saved_model.pb"
    assert model_files(config, tmp_path / "2") == (tmp_path / "2", True)


def test_reading_imports_no_tensorflow(tmp_path):
    written(tmp_path / "model.savedmodel", {"serving_default": ROWS})
    program = (
        "import sys; from pathlib import Path; from backend_tensorflow import backend\n"
        "from backend_tensorflow.static_check import check_version\n"
        "from core.config import parse_text\n"
        f"check_version(parse_text('name: \"m\"', 'c'), Path({str(tmp_path)!r}), backend)\n"
        "print('tensorflow' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False\n"
