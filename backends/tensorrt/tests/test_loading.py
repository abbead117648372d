"""Loading an engine from a file: the file, the runtime, and errors."""

import gc
import re
import subprocess
import sys
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from backend_tensorrt.problems import failed, is_sticky, not_loaded

from core.errors import CoreError, Fatal, Kind

X = np.ones((1, 3), np.float32)


def refusal(serve, *args, **kwargs):
    with pytest.raises(CoreError) as error:
        serve(*args, **kwargs)
    return error.value.message


def answer(served):
    return served.ask({"x": X}, (), "m")["y"].tolist()


def test_a_folder_with_nothing_but_the_engine_is_a_model(serve, twice):
    served = serve(None)

    assert answer(served) == [[2.0] * 3]
    config = served.config("m")
    assert (config.platform, config.backend) == ("tensorrt_plan", "tensorrt")
    assert config.instance_group[0].count == 1


def test_default_model_filename(serve, twice):
    served = serve('default_model_filename: "other.engine"', files={"other.engine": b"engine"})

    assert answer(served) == [[2.0] * 3]


@pytest.mark.parametrize(("capability", "factor"), [((8, 0), 3.0), ((12, 0), 4.0), ((9, 0), 2.0)])
def test_a_file_for_each_compute_capability(serve, twice, fake, port, capability, factor):
    bounds = ((1, 3), (4, 3), (8, 3))
    for data, by in ((b"ampere", 3), (b"blackwell", 4)):
        ports = [port("x", bounds), port("y", dims=(-1, 3))]
        fake.engine(ports, lambda x, by=by: {"y": by * x}, data=data)
    fake.cuda.version = capability
    names = "".join(
        f'cc_model_filenames {{ key: "{key}" value: "{name}" }} '
        for key, name in (("8.0", "a.plan"), ("12.0", "b.plan"))
    )
    files = {"a.plan": b"ampere", "b.plan": b"blackwell", "model.plan": b"engine"}

    assert answer(serve(names, files=files)) == [[factor] * 3]


def test_an_error_for_a_missing_file_lists_the_files_that_are_there(serve, twice):
    found = refusal(serve, files={"model.engine": b"engine"})

    assert "1/model.plan' for model 'm' on a GPU with compute capability 9.0" in found
    assert "its folder has model.engine" in found


def test_instances_share_the_engine_and_have_their_own_contexts(serve, twice, fake):
    serve("instance_group [ { kind: KIND_GPU count: 3 } ]", files={"model.plan": b"engine"})

    assert len(twice.contexts) == 3
    assert len(fake.runtimes) == 2  # one for the completion of the configuration, one for the load


@pytest.mark.parametrize("strategy", ["STATIC", "ON_PROFILE_CHANGE"])
def test_contexts_allocate_as_the_parameter_says(serve, twice, strategy):
    serve(
        'parameters { key: "execution_context_allocation_strategy" '
        f'value {{ string_value: "{strategy}" }} }}'
    )

    assert [each.strategy.name for each in twice.contexts] == [strategy]


def test_version_compatible_engines_may_contain_code_if_allowed(serve, twice, fake):
    serve(settings={"version-compatible": "true"})

    assert all(each.engine_host_code_allowed for each in fake.runtimes)


def test_engines_may_not_contain_code_by_default(serve, twice, fake):
    serve()

    assert not any(each.engine_host_code_allowed for each in fake.runtimes)


def dla(core):
    return (
        "instance_group [ { kind: KIND_GPU count: 1 secondary_devices [ "
        f"{{ kind: KIND_NVDLA device_id: {core} }} ] }} ]"
    )


def test_a_dla_core(serve, twice, fake):
    serve(dla(1))

    assert fake.runtimes[-1].DLA_core == 1


def test_a_missing_dla_core_is_refused(serve, twice):
    assert "asks for DLA core 2, this device has 2" in refusal(serve, dla(2))


def test_plugins_must_be_files(serve, twice):
    found = refusal(serve, settings={"plugins": "/none/a.so;/none/b.so"})

    assert "there is no file '/none/a.so'" in found


def test_plugins_that_tensorrt_refuses(serve, twice, tmp_path):
    """The plugin registry is TensorRT's own."""
    (tmp_path / "a.so").write_bytes(b"no library")

    found = refusal(serve, settings={"plugins": str(tmp_path / "a.so")})

    assert f"TensorRT 11.4.0.106 cannot load the plugins of '{tmp_path}/a.so'" in found


def test_the_cpu_is_refused(serve, twice):
    found = refusal(serve, "instance_group [ { kind: KIND_CPU } ]")

    assert "TensorRT backend supports only GPU device, instance 'm_0_0' is on cpu:0" in found


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (
            0,
            "TensorRT engines run on NVIDIA GPUs only, and none can be used here; check with nvidia-smi",
        ),
        (
            RuntimeError("cudaErrorInsufficientDriver: too old"),
            r"\(cudaErrorInsufficientDriver: too old\)",
        ),
    ],
)
def test_without_a_gpu_tensorrt_is_not_started(serve, twice, fake, devices, expected):
    fake.cuda.devices = devices

    with pytest.raises(CoreError, match=expected):
        serve()
    assert fake.runtimes == []


def test_a_runtime_that_reported_an_error_is_not_used(serve, twice, fake, monkeypatch):
    """The runtime of TensorRT would crash the process when it is used."""

    class Broken:
        def __init__(self, logger):
            logger.log(SimpleNamespace(name="ERROR"), "CUDA initialization failure with error: 35")

        def __getattr__(self, name):
            raise AssertionError(name)

    monkeypatch.setattr(fake.trt, "Runtime", Broken)

    assert "none can be used here (CUDA initialization failure with error: 35)" in refusal(serve)


REPORTS = {
    "Serialization assertion stdVersionRead == kSERIALIZATION_VERSION failed.Version tag does not match. "
    "Note: Current Version: 239, Serialized Engine Version: 236)": (
        "another version of TensorRT .its format is 236, TensorRT 10.9 reads 239"
    ),
    "The engine plan file is not compatible with this version of TensorRT, expecting library version "
    "10.9.0.34 got 10.3.0.26, please rebuild.": (
        r"built with TensorRT 10\.3\.0\.26, here is 10\.9\.0\.34; .*compatible=true"
    ),
    "The engine plan file is generated on an incompatible device, expecting compute 9.0 got compute 7.5, "
    "please rebuild.": r"compute capability 7\.5, this one has 9\.0; .*cc_model_filenames",
    "Cannot find plugin: Mine, version: 1, namespace:.": "plugin Mine, which is not loaded; .*plugins=",
    "Error Code 1: Serialization (Magic tag does not match)": "no complete TensorRT engine",
    "Plan contains host code but engineHostCodeAllowed is false": "if you trust it, set .*compatible=true",
    "Error Code 2: OutOfMemory (Requested size was 1 GB)": "not enough free memory for it",
    "something new": r"TensorRT 10\.9 refuses it on a GPU with compute capability 9\.0",
}


@pytest.mark.parametrize("report", REPORTS)
def test_reports_of_tensorrt_become_errors_with_advice(tmp_path, report):
    path = tmp_path / "model.plan"
    path.write_bytes(b"ptrt" + bytes(100))

    found = not_loaded(path, "m", report, version="10.9", runtime="full", gpu="9.0")

    assert re.search(REPORTS[report], found.message), found.message
    assert found.message.endswith(f"(TensorRT says: {report})")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "it is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        (b"PK\x03\x04archive", "it is a zip archive"),
        (b"\x08\x07\x12\x07pytorch", "it is an ONNX model"),
    ],
)
def test_files_that_are_no_engines(serve, twice, content, expected):
    assert expected in refusal(serve, files={"model.plan": content})


def test_an_error_of_the_lean_runtime_names_the_engines_that_it_runs(tmp_path):
    path = tmp_path / "model.plan"
    path.write_bytes(b"ptrt")

    found = not_loaded(
        path, "m", "needs kVERSION_COMPATIBLE", version="11.4", runtime="lean", gpu="9.0"
    )

    assert "lean runtime 11.4 runs only engines that were built version-compatible" in found.message


def test_a_truncated_engine_fails_its_model_with_the_report(serve, twice, fake):
    fake.reports = ["Error Code 1: Serialization (Magic tag does not match)"]

    assert "no complete TensorRT engine" in refusal(serve, files={"model.plan": b"engi"})


class TestErrorsOfExecutions:
    def test_an_execution_that_does_not_start_fails_its_batch_only(self, serve, twice):
        served = serve()
        twice.fails = "Error Code 3: API Usage Error (wrong  shape)"

        with pytest.raises(CoreError) as error:
            answer(served)
        twice.fails = ""

        assert error.value.message.endswith(
            "model 'm': TensorRT: Error Code 3: API Usage Error (wrong shape)"
        )
        assert answer(served) == [[2.0] * 3]

    def test_a_fatal_error_takes_the_instance_out_of_service(self, serve, fake, port):
        def broken(x):
            raise RuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")

        fake.engine([port("x", ((1, 3), (4, 3), (8, 3))), port("y", dims=(-1, 3))], broken)
        served = serve()

        with pytest.raises(CoreError, match="restart the server"):
            answer(served)
        with pytest.raises(CoreError):
            answer(served)

    def test_errors_that_are_fatal(self):
        assert isinstance(
            failed("m", "m_0", "gpu:0", "CUDA error: unspecified launch failure"), Fatal
        )
        assert isinstance(failed("m", "m_0", "gpu:0", "cudaErrorECCUncorrectable: ECC"), Fatal)
        memory = failed("m", "m_0", "gpu:0", "cudaErrorMemoryAllocation: out of memory")
        assert memory.kind is Kind.UNAVAILABLE and not isinstance(memory, Fatal)
        assert not is_sticky("Error Code 3: API Usage Error")


def test_an_unload_frees_everything(serve, twice, fake):
    served = serve("instance_group [ { kind: KIND_GPU count: 2 } ]")
    answer(served)
    contexts = [weakref.ref(each) for each in twice.contexts]
    twice.contexts.clear()

    served.unload("m")
    fake.cuda.streams.clear()  # fake streams keep their work
    gc.collect()

    assert [each() for each in contexts] == [None, None]
    assert fake.cuda.history[-1] == ("", "trim")
    assert not [each.name for each in threading.enumerate() if each.name.startswith("tensorrt-")]


def test_nothing_of_tensorrt_is_imported_with_the_package():
    code = (
        "import sys, backend_tensorrt; "
        "print([m for m in sys.modules if m.startswith(('tensorrt', 'cupy'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
