"""Parameters and accelerators in config.pbtxt."""

import pytest
from backend_paddle.settings import Settings, settings_of

from core.config import parse_text
from core.errors import CoreError


def of(text="", **parameters):
    for name, value in parameters.items():
        text += f" parameters {{ key: '{name}' value {{ string_value: '{value}' }} }}"
    return settings_of(parse_text(f'name: "m" {text}', "config.pbtxt"))


def accelerator(name, kind="cpu", **parameters):
    given = " ".join(f"parameters {{ key: '{n}' value: '{v}' }}" for n, v in parameters.items())
    return (
        f"optimization {{ execution_accelerators {{ {kind}_execution_accelerator "
        f"{{ name: '{name}' {given} }} }} }}"
    )


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, Settings()),
        ({"cpu_threads": "3"}, Settings(threads=3)),
        ({"enable_mkldnn": "True"}, Settings(onednn=True)),
        ({"enable_mkldnn": "0"}, Settings(onednn=False)),
        ({"mkldnn_cache_capacity": "20"}, Settings(onednn_cache=20)),
    ],
)
def test_values(parameters, expected):
    assert of(**parameters) == expected


def test_the_accelerator_of_triton():
    text = accelerator("mkldnn", cpu_threads=2, capacity=7, use_int8=1)

    assert of(text) == Settings(threads=2, onednn=True, onednn_cache=7)


def test_parameters_count_before_accelerators():
    text = accelerator("mkldnn", cpu_threads=2)

    assert of(text, cpu_threads="4", enable_mkldnn="false") == Settings(threads=4, onednn=False)


def test_threads_without_an_accelerator_as_triton_takes_them():
    assert of(accelerator("", cpu_threads=2)) == Settings(threads=2)


def test_the_level_of_the_graph_leaves_the_program_as_it_is():
    assert not of("optimization { graph { level: -1 } }").optimize


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("cpu_threads", "0", "a whole number from 1 to"),
        ("cpu_threads", "-1", "a whole number from 1 to"),
        ("cpu_threads", "9" * 12, "a whole number from 1 to"),
        ("mkldnn_cache_capacity", "x", "a whole number from 1 to"),
        ("enable_mkldnn", "yes", "true or false, got yes"),
    ],
)
def test_wrong_values_are_errors_with_what_is_expected(name, value, text):
    with pytest.raises(CoreError, match=f"model 'm': expected '{name}' to be {text}"):
        of(**{name: value})


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (accelerator("ort"), "'ort' needs a build of Paddle with ONNX Runtime"),
        (
            accelerator("tensorrt", "gpu", precision="trt_fp16"),
            "'tensorrt' needs a build of Paddle",
        ),
        (accelerator("openvino"), "no accelerator 'openvino' for Paddle on CPUs; there is mkldnn"),
        (accelerator("mkldnn", size=1), "'mkldnn' has no parameter 'size'; it has cpu_threads"),
    ],
)
def test_accelerators_that_are_not_there(text, error):
    with pytest.raises(CoreError, match=error):
        of(text)
