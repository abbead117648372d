"""The files of a model determine its backend."""

import pytest

from core import plugins
from core.config import Format, Formats, ModelConfig, fill, parse_text
from core.errors import CoreError, Kind


def filled(text="", *files, name="m"):
    """backend, platform and default_model_filename after filling in."""
    config = parse_text(text, "test")
    fill(config, name, plugins.formats(), files)
    return config.backend, config.platform, config.default_model_filename


ONNX = ("onnxruntime", "onnxruntime_onnx", "model.onnx")
TORCH = ("pytorch", "pytorch_libtorch", "model.pt")
AOTI = ("pytorch", "torch_aoti", "model.pt2")
PLAN = ("tensorrt", "tensorrt_plan", "model.plan")
PYTHON = ("python", "", "model.py")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("model.savedmodel/", ("tensorflow", "tensorflow_savedmodel", "model.savedmodel")),
        ("model.graphdef", ("tensorflow", "tensorflow_graphdef", "model.graphdef")),
        ("saved_model.pb", ("tensorflow", "tensorflow_savedmodel", "saved_model.pb")),
        ("model.plan", PLAN),
        ("model.onnx", ONNX),
        ("model.onnx/", ONNX),
        ("model.xml", ("openvino", "", "model.xml")),
        ("model.pt", TORCH),
        ("model.pt2", AOTI),
        ("model.py", PYTHON),
    ],
)
def test_a_known_file_decides_the_backend(file, expected):
    assert filled("", "readme.txt", file) == expected
    assert filled(f'default_model_filename: "{file.rstrip("/")}"') == expected


def test_the_first_known_format_wins():
    assert filled("", "model.py", "model.onnx", "model.plan") == PLAN
    assert filled("", "model.py", "model.pt", "model.pt2") == TORCH


def test_a_folder_is_no_plan_and_a_file_is_no_saved_model():
    assert filled("", "model.plan/", "model.savedmodel", "model.py") == PYTHON


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('platform: "tensorrt_plan"', PLAN),
        ('platform: "onnxruntime_onnx"', ONNX),
        ('platform: "pytorch_libtorch"', TORCH),
        ('platform: "libtorch"', ("pytorch", "libtorch", "model.pt")),
        ('platform: "torch_aoti"', AOTI),
        (
            'platform: "tensorflow_graphdef"',
            ("tensorflow", "tensorflow_graphdef", "model.graphdef"),
        ),
        ('backend: "onnxruntime"', ONNX),
        ('backend: "tensorrt"', PLAN),
        ('backend: "python"', PYTHON),
        ('backend: "pytorch"', TORCH),
        ('backend: "pytorch" platform: "torch_aoti"', AOTI),
        ('backend: "openvino"', ("openvino", "", "model.xml")),
        ('backend: "fil"', ("fil", "", "")),
        ('backend: "python" platform: "mine"', ("python", "mine", "model.py")),
    ],
)
def test_legacy_platform_words_and_backends_complete_each_other(text, expected):
    assert filled(text, "model.py", "model.onnx") == expected


def test_values_of_the_configuration_are_kept():
    assert filled('backend: "onnxruntime" default_model_filename: "big.onnx"') == (
        "onnxruntime",
        "onnxruntime_onnx",
        "big.onnx",
    )


def test_a_pytorch_backend_is_torchscript_whatever_the_file_is_called():
    assert filled('backend: "pytorch" default_model_filename: "model.pt2"') == (
        "pytorch",
        "pytorch_libtorch",
        "model.pt2",
    )


def test_a_tensorflow_backend_needs_its_files_to_know_the_format():
    saved_model = ("tensorflow", "tensorflow_savedmodel", "model.savedmodel")
    assert filled('backend: "tensorflow"', "model.savedmodel/") == saved_model
    assert filled('backend: "tensorflow"', "other") == ("tensorflow", "", "")


def test_a_model_name_may_end_in_its_backend():
    assert filled("", name="echo.identity") == ("identity", "", "model.identity")


def test_a_model_without_any_sign_of_a_backend_is_refused():
    formats = Formats(
        [Format("model.py", "python", order=8), Format("model.plan", "tensorrt", order=3)]
    )

    with pytest.raises(CoreError) as caught:
        fill(ModelConfig(), "m", formats, ["weights.bin"])

    assert caught.value.kind is Kind.INVALID
    assert caught.value.message == (
        "Invalid model name: Could not determine backend for model 'm' with no backend in model "
        "configuration. Expected model name of the form 'model.<backend_name>'. No installed backend knows "
        "the files of its version: found weights.bin; known are model.plan, model.py"
    )


@pytest.mark.parametrize("word", ['platform: "ensemble"', 'backend: "ensemble"'])
def test_an_ensemble_may_be_called_so_by_platform_or_backend(word):
    assert filled(word + " ensemble_scheduling { }", "model.py") == ("", "ensemble", "")


def test_the_name_is_that_of_the_folder_unless_given():
    config = parse_text('backend: "python"', "test")
    fill(config, "folder", plugins.formats())
    assert config.name == "folder"

    fill(config, "other", plugins.formats())
    assert config.name == "folder"


MINE = Format("model.mine", "mine")
YOURS = Format("model.yours", "yours")
JSON = Format("model.json", "scripts")
SCRIPT = Format("model.script", "scripts", order=8)


def found(formats, *files, name="m", text=""):
    config = parse_text(text, "test")
    fill(config, name, Formats(formats), files)
    return config.backend, config.default_model_filename


def test_a_format_unknown_to_triton_comes_after_the_known_ones():
    assert found([MINE, SCRIPT], "model.mine", "model.script") == ("scripts", "model.script")
    assert found([MINE, SCRIPT], "model.mine", "notes") == ("mine", "model.mine")


def test_a_backend_in_the_name_of_a_model_goes_before_formats_that_triton_does_not_know():
    assert found([MINE], "model.mine", name="m.identity") == ("identity", "model.identity")
    assert found([SCRIPT], "model.script", name="m.identity") == ("scripts", "model.script")


def test_a_backend_with_a_file_that_triton_knows_gets_that_file_and_looks_for_others_itself():
    assert found([JSON, SCRIPT], "model.json") == ("scripts", "model.script")


def test_of_several_files_of_a_backend_the_one_that_is_there_is_the_default():
    other = Format("model.also", "mine")

    assert found([MINE, other], "model.mine") == ("mine", "model.mine")
    assert found([MINE, other], "model.mine", text='backend: "mine"') == ("mine", "model.mine")
    assert found([MINE, other], text='backend: "mine"') == ("mine", "model.also")


def test_files_of_two_unordered_backends_are_refused_with_advice():
    with pytest.raises(CoreError) as caught:
        found([MINE, YOURS], "model.mine", "model.yours")

    assert caught.value.message == (
        "the files of the model are for several backends of the same precedence: model.mine ('mine'), "
        "model.yours ('yours'); name one with 'backend' in config.pbtxt"
    )
    assert found([MINE, YOURS], "model.mine", "model.yours", text='backend: "yours"') == (
        "yours",
        "model.yours",
    )
