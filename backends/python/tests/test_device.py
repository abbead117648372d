"""GPU tensors of models in the server's process. The host's memory plays the GPU's, and the calls of CUDA's
driver are recorded."""

import ctypes
import textwrap

import numpy as np
import pytest
from backend_python.api import cuda
from core_testing.fake_device import FakeDevice

import core
from core.devices import dlpack
from core.devices.visible import gpus
from core.request import DeviceOutput

MODES = ["thread", "inline"]
X = np.array([[1, 2, 3]], np.float32)

MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils
from backend_python.api import dlpack

seen = []


def on_gpu(name, array):
    steps = tuple(step // array.itemsize for step in array.strides)
    capsule = dlpack.lend(array.ctypes.data, array.shape, steps, 11, (2, 0), array)
    return pb_utils.Tensor.from_dlpack(name, capsule)


def values(tensor):
    return tensor.as_numpy() if tensor.is_cpu() else dlpack.borrow(tensor.to_dlpack()).array()


class TritonPythonModel:
"""
TWICE = """
def execute(self, requests):
    answers = []
    for request in requests:
        x = pb_utils.get_input_tensor_by_name(request, "x")
        where = 0.0 if x.is_cpu() else 100.0
        answers.append(pb_utils.InferenceResponse([on_gpu("y", values(x) * 2 + where)]))
    return answers
"""
CALLS = """
def execute(self, requests):
    x = pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()
    call = pb_utils.InferenceRequest(
        model_name="twice", requested_output_names=NAMES, inputs=[on_gpu("x", x)], PREFERRED)
    response = call.exec()
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    y = response.output_tensors()[0]
    return [pb_utils.InferenceResponse(
        [pb_utils.Tensor("y", values(y) + (0.0 if y.is_cpu() else 1000.0))])]
"""
GPU_PREFERRED = "preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU)"


@pytest.fixture(autouse=True)
def driver(request, monkeypatch):
    """Record the calls of CUDA's driver; a real GPU executes them."""
    if "gpu" in request.keywords:
        return None
    asked = []

    def copy_to_host(address, size, device):
        asked.append(("copy", size))
        return np.frombuffer(ctypes.string_at(address, size), np.uint8)

    monkeypatch.setattr(cuda, "copy_to_host", copy_to_host)
    monkeypatch.setattr(cuda, "wait", lambda device: asked.append(("wait", device)))
    return asked


def step(model, takes, gives):
    return (
        f'step {{ model_name: "{model}" input_map {{ key: "x" value: "{takes}" }} '
        f'output_map {{ key: "y" value: "{gives}" }} }}'
    )


@pytest.fixture
def server(tmp_path):
    def serve(mode="thread", forced="no", **sources):
        io = '{ name: "%s" data_type: TYPE_FP32 dims: [ -1 ] }'
        for name, body in {"twice": TWICE, **sources}.items():
            (tmp_path / name / "1").mkdir(parents=True)
            text = MODEL + textwrap.indent(textwrap.dedent(body), "    ")
            (tmp_path / name / "1" / "model.py").write_text(text)
            (tmp_path / name / "config.pbtxt").write_text(
                f'backend: "python" max_batch_size: 4 input [ {io % "x"} ] output [ {io % "y"} ] '
                f'parameters {{ key: "EXECUTION_MODE" value {{ string_value: "{mode}" }} }} '
                'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" '
                f'value {{ string_value: "{forced}" }} }}'
            )
        (tmp_path / "both" / "1").mkdir(parents=True)
        (tmp_path / "both" / "config.pbtxt").write_text(
            f'platform: "ensemble" max_batch_size: 4 input [ {io % "x"} ] output [ {io % "z"} ] '
            f"ensemble_scheduling {{ {step('twice', 'x', 'a')} {step('twice', 'a', 'z')} }}"
        )
        return core.Server(model_repository=str(tmp_path))

    return serve


@pytest.mark.parametrize("mode", MODES)
def test_between_steps_a_tensor_stays_on_the_gpu(server, driver, mode):
    with server(mode) as serving:
        found = serving.infer("both", {"x": X})["z"]

    assert np.array_equal(found, (X * 2) * 2 + 100)  # the second step found it there
    assert [what for what, _ in driver] == ["wait", "copy"]  # for the second step, for the client


@pytest.mark.parametrize("mode", MODES)
def test_a_model_that_forces_its_inputs_gets_them_on_the_host(server, driver, mode):
    with server(mode, forced="yes") as serving:
        found = serving.infer("both", {"x": X})["z"]

    assert np.array_equal(found, (X * 2) * 2)
    assert [what for what, _ in driver] == ["copy", "copy"]


def test_an_input_of_a_program_is_not_copied(server, driver):
    place = FakeDevice(dlpack.CUDA)

    with server() as serving:
        found = serving.infer("twice", {"x": place.array(X)}, outputs=[DeviceOutput("y")])

        assert found.tensor("y").device == (2, 0) and driver == []
        assert np.array_equal(found.tensor("y").array, X * 2 + 100)
    assert place.copies == 0


def test_an_input_of_another_kind_of_device_comes_over_the_host(server):
    place = FakeDevice(14)

    with server() as serving:
        found = serving.infer("twice", {"x": place.array(X)})["y"]

    assert np.array_equal(found, X * 2) and place.copies == 1


@pytest.mark.parametrize("names", ['["y"]', "[]"])
def test_a_call_that_prefers_the_gpu_gets_its_answer_there(server, driver, names):
    calls = CALLS.replace("PREFERRED", GPU_PREFERRED).replace("NAMES", names)

    with server(calls=calls) as serving:
        found = serving.infer("calls", {"x": X})["y"]

    assert np.array_equal(found, X * 2 + 100 + 1000)
    assert "copy" not in [what for what, _ in driver]


def test_another_call_gets_its_answer_on_the_host(server, driver):
    calls = CALLS.replace("PREFERRED", "").replace("NAMES", '["y"]')

    with server(calls=calls) as serving:
        found = serving.infer("calls", {"x": X})["y"]

    assert np.array_equal(found, X * 2 + 100)
    assert [what for what, _ in driver] == ["wait", "copy"]


def test_a_call_that_prefers_the_gpu_of_an_unknown_model_is_an_error(server):
    calls = CALLS.replace("PREFERRED", GPU_PREFERRED).replace("NAMES", "[]").replace("twice", "no")

    with server(calls=calls) as serving, pytest.raises(core.CoreError, match="'no' is not ready"):
        serving.infer("calls", {"x": X})


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_models_of_a_real_gpu_hand_their_tensors_on(tmp_path, library):
    array = pytest.importorskip(library)
    if not (array.cuda.is_available() if library == "torch" else gpus()):
        pytest.skip("there is no GPU")
    io = '{ name: "%s" data_type: TYPE_FP32 dims: [ -1 ] }'
    twice = f"""
    def execute(self, requests):
        import {library}
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x")
            there = {library}.from_dlpack(x)
            there = {"cupy.asarray(there)" if library == "cupy" else "there.cuda()"} * 2
            there = there + (0 if x.is_cpu() else 100)
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("y", there)]))
        return answers
    """
    if library == "cupy":
        twice = twice.replace(
            "cupy.from_dlpack(x)", "x.as_numpy() if x.is_cpu() else cupy.from_dlpack(x)"
        )
    (tmp_path / "twice" / "1").mkdir(parents=True)
    text = MODEL + textwrap.indent(textwrap.dedent(twice), "    ")
    (tmp_path / "twice" / "1" / "model.py").write_text(text)
    (tmp_path / "twice" / "config.pbtxt").write_text(
        f'backend: "python" max_batch_size: 4 input [ {io % "x"} ] output [ {io % "y"} ] '
        'parameters { key: "EXECUTION_MODE" value { string_value: "thread" } } '
        'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }'
    )
    (tmp_path / "both" / "1").mkdir(parents=True)
    (tmp_path / "both" / "config.pbtxt").write_text(
        f'platform: "ensemble" max_batch_size: 4 input [ {io % "x"} ] output [ {io % "z"} ] '
        f"ensemble_scheduling {{ {step('twice', 'x', 'a')} {step('twice', 'a', 'z')} }}"
    )

    with core.Server(model_repository=str(tmp_path)) as serving:
        assert np.array_equal(serving.infer("both", {"x": X})["z"], X * 4 + 100)
