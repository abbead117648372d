"""The execution providers of a device and its accelerators."""

import onnxruntime as ort
import pytest
from backend_onnx.providers import check_active, providers_for

from core.backend import Device
from core.config import parse_text
from core.errors import CoreError, Kind

CPU, GPU = Device("CPU"), Device("GPU", 1)
EVERYTHING = [
    "TensorrtExecutionProvider",
    "CUDAExecutionProvider",
    "OpenVINOExecutionProvider",
    "CPUExecutionProvider",
]


@pytest.fixture
def built_with_everything(monkeypatch):
    """Simulate an onnxruntime with all providers, which no wheel has."""
    monkeypatch.setattr(ort, "get_available_providers", lambda: EVERYTHING)


def found(text, device):
    return providers_for(parse_text(f"name: 'm' {text}", "test"), device)


def test_a_cpu_instance_runs_on_the_cpu():
    assert found("", CPU) == [("CPUExecutionProvider", {})]


def test_a_model_with_kind_model_runs_on_the_cpu():
    assert found("", Device("MODEL")) == [("CPUExecutionProvider", {})]


@pytest.mark.skipif(
    "CUDAExecutionProvider" in ort.get_available_providers(), reason="this onnxruntime has CUDA"
)
def test_a_gpu_without_cuda_in_onnxruntime_is_an_error_with_the_package_to_install():
    with pytest.raises(CoreError, match=r"on gpu:1 needs CUDAExecutionProvider") as caught:
        found("", GPU)

    assert caught.value.kind is Kind.UNSUPPORTED
    for text in ("'m'", "pip install onnxruntime-gpu", "KIND_CPU"):
        assert text in caught.value.message


@pytest.mark.usefixtures("built_with_everything")
def test_a_gpu_instance_runs_on_its_gpu():
    assert found("", GPU) == [
        ("CUDAExecutionProvider", {"device_id": "1"}),
        ("CPUExecutionProvider", {}),
    ]


@pytest.mark.usefixtures("built_with_everything")
def test_accelerators_come_first_with_their_options():
    text = """
        optimization { execution_accelerators { gpu_execution_accelerator [
          { name: "tensorrt"
            parameters { key: "precision_mode" value: "FP16" }
            parameters { key: "max_workspace_size_bytes" value: "1073741824" }
            parameters { key: "trt_engine_cache_enable" value: "1" } },
          { name: "cuda" parameters { key: "cudnn_conv_use_max_workspace" value: "0" } }
        ] } }
    """

    assert found(text, GPU) == [
        (
            "TensorrtExecutionProvider",
            {
                "trt_fp16_enable": "1",
                "trt_max_workspace_size": "1073741824",
                "trt_engine_cache_enable": "1",
                "device_id": "1",
            },
        ),
        ("CUDAExecutionProvider", {"cudnn_conv_use_max_workspace": "0", "device_id": "1"}),
        ("CPUExecutionProvider", {}),
    ]


@pytest.mark.usefixtures("built_with_everything")
def test_older_parameters_of_cuda_still_work():
    text = """
        parameters { key: "cudnn_conv_algo_search" value { string_value: "1" } }
        parameters { key: "gpu_mem_limit" value { string_value: "4294967296" } }
        parameters { key: "arena_extend_strategy" value { string_value: "1" } }
        parameters { key: "do_copy_in_default_stream" value { string_value: "true" } }
    """

    assert found(text, GPU)[0] == (
        "CUDAExecutionProvider",
        {
            "cudnn_conv_algo_search": "HEURISTIC",
            "gpu_mem_limit": "4294967296",
            "arena_extend_strategy": "kSameAsRequested",
            "do_copy_in_default_stream": "1",
            "device_id": "1",
        },
    )


@pytest.mark.usefixtures("built_with_everything")
def test_openvino_is_preferred_to_the_cpu():
    text = (
        "optimization { execution_accelerators { cpu_execution_accelerator { name: 'openvino' } } }"
    )

    assert found(text, CPU)[0] == ("OpenVINOExecutionProvider", {"device_type": "CPU"})


@pytest.mark.skipif(
    "OpenVINOExecutionProvider" in ort.get_available_providers(), reason="this one has OpenVINO"
)
def test_an_accelerator_that_onnxruntime_lacks_is_refused(serve, identity):
    text = (
        "optimization { execution_accelerators { cpu_execution_accelerator { name: 'openvino' } } }"
    )

    with pytest.raises(CoreError, match=r"OpenVINOExecutionProvider.*onnxruntime-openvino"):
        serve(identity(), text)


@pytest.mark.parametrize(
    ("kind", "device"), [("gpu_execution_accelerator", GPU), ("cpu_execution_accelerator", CPU)]
)
def test_an_accelerator_that_does_not_exist_is_refused(kind, device):
    text = f"optimization {{ execution_accelerators {{ {kind} {{ name: 'warp' }} }} }}"

    with pytest.raises(CoreError, match=f"unknown Execution Accelerator 'warp'.*{kind}"):
        found(text, device)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("precision_mode", "FP12", "unsupported precision mode 'FP12'"),
        ("speed", "11", "unknown parameter 'speed'"),
    ],
)
def test_wrong_settings_of_tensorrt_are_refused(key, value, text):
    accelerator = f"{{ name: 'tensorrt' parameters {{ key: '{key}' value: '{value}' }} }}"
    config = (
        f"optimization {{ execution_accelerators {{ gpu_execution_accelerator {accelerator} }} }}"
    )

    with pytest.raises(CoreError, match=text):
        found(config, GPU)


def test_a_session_without_its_gpu_provider_is_refused(identity):
    session = ort.InferenceSession(
        identity().SerializeToString(), providers=["CPUExecutionProvider"]
    )

    with pytest.raises(CoreError, match="could not start it on this machine"):
        check_active(session, [("CUDAExecutionProvider", {}), ("CPUExecutionProvider", {})], "m")
