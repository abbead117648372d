"""Arrays on the device of a session. Without a GPU the session's device is the host under another name, which
other libraries cannot read; with a GPU, the GPU."""

import importlib.util

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from backend_onnx import device, instance
from core_testing.fake_device import FakeDevice
from onnx import TensorProto

import core
from core import dtypes
from core.devices import dlpack
from core.request import DeviceOutput

KIND = 12  # kDLExtDev: core must not read it
PLACE = device.Place("cpu", KIND, 0)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def bound(monkeypatch):
    """Record the bindings of sessions as ("in" or "out", name, address). They are made as on a device."""
    seen = []
    monkeypatch.setattr(instance, "place_of", lambda device: PLACE)
    real = ort.InferenceSession.io_binding

    def io_binding(session):
        binding = real(session)
        bind_input, bind_output = binding.bind_input, binding.bind_output

        def noted_input(name, place, number, kind, shape, address):
            seen.append(("in", name, address))
            return bind_input(name, place, number, kind, shape, address)

        def noted_output(name, place, number=0, kind=None, shape=None, address=None):
            seen.append(("out", name, address))
            return bind_output(name, place, number, kind, shape, address)

        binding.bind_input, binding.bind_output = noted_input, noted_output
        return binding

    monkeypatch.setattr(ort.InferenceSession, "io_binding", io_binding)
    return seen


def step(model, takes, gives):
    return (
        f'step {{ model_name: "{model}" input_map {{ key: "x" value: "{takes}" }} '
        f'output_map {{ key: "y" value: "{gives}" }} }}'
    )


@pytest.fixture
def server(tmp_path, graph):
    """A server of `add`, which computes y = x + x, and of `twice`, an ensemble of two such steps."""

    def serve(kind=TensorProto.FLOAT, operator="Add", more="", group="KIND_CPU"):
        takes = ["x", "x"] if operator == "Add" else ["x"]
        folder = tmp_path / "add"
        (folder / "1").mkdir(parents=True)
        made = graph(
            [(operator, takes, ["y"], {})], {"x": (kind, ["n", 3])}, {"y": (kind, ["n", 3])}
        )
        onnx.save(made, str(folder / "1" / "model.onnx"))
        (folder / "config.pbtxt").write_text(
            f'backend: "onnxruntime" max_batch_size: 8 '
            f"instance_group [ {{ kind: {group} count: 1 }} ] {more}"
        )
        name = TensorProto.DataType.Name(kind).replace("FLOAT", "FP32").replace("DOUBLE", "FP64")
        io = '{ name: "%s" data_type: TYPE_' + name + " dims: [ 3 ] }"
        (tmp_path / "twice").mkdir()
        (tmp_path / "twice" / "1").mkdir()
        (tmp_path / "twice" / "config.pbtxt").write_text(
            f'platform: "ensemble" max_batch_size: 8 input [ {io % "x"} ] output [ {io % "z"} ] '
            f"ensemble_scheduling {{ {step('add', 'x', 'a')} {step('add', 'a', 'z')} }}"
        )
        return core.Server(model_repository=str(tmp_path))

    return serve


def test_an_output_stays_on_the_device_if_requested(bound, server):
    with server() as serving:
        found = serving.infer("add", {"x": X}, outputs=[DeviceOutput("y")])

        assert isinstance(found["y"], device.OnDevice) and found.tensor("y").device == (KIND, 0)
        assert ("out", "y", None) in bound  # ONNX Runtime's own memory
        assert np.array_equal(found.tensor("y").array, X + X)


def test_the_session_writes_an_output_for_the_host_to_the_host(bound, server):
    with server() as serving:
        found = serving.infer("add", {"x": X})

        assert np.array_equal(found["y"], X + X)
        assert all(address is not None for way, _, address in bound if way == "out")


def test_an_input_on_the_device_is_bound_without_a_copy(bound, server):
    array = FakeDevice(KIND).array(X)

    with server() as serving:
        found = serving.infer("add", {"x": array})

    assert np.array_equal(found["y"], X + X)
    assert ("in", "x", array._held.ctypes.data) in bound
    assert array.place.copies == 0


@pytest.mark.parametrize("elsewhere", [FakeDevice(KIND, 1), FakeDevice(dlpack.CUDA)])
def test_an_input_on_another_device_is_copied_through_the_host(bound, server, elsewhere):
    with server() as serving:
        found = serving.infer("add", {"x": elsewhere.array(X)})

    assert np.array_equal(found["y"], X + X) and elsewhere.copies == 1
    elsewhere.copies = 0


def test_an_input_that_is_not_contiguous_is_copied_through_the_host(bound, server):
    torch = pytest.importorskip("torch")

    class Strided:
        def __init__(self, array):
            self.array = array
            self.dtype, self.shape = array.dtype, array.shape

        def cpu(self):
            return self.array

        def __dlpack_device__(self):
            return (KIND, 0)

        def __dlpack__(self, **_):
            return self.array.__dlpack__()

    with server() as serving:
        found = serving.infer("add", {"x": Strided(torch.tensor(X.T.copy()).T)})

    assert np.array_equal(found["y"], X + X)


def test_a_tensor_between_two_sessions_on_the_device_is_not_copied(bound, server, monkeypatch):
    copies = []
    real = dlpack.to_host
    monkeypatch.setattr(dlpack, "to_host", lambda array: copies.append(array) or real(array))

    with server() as serving:
        found = serving.infer("twice", {"x": X})

    assert np.array_equal(found["z"], 4 * X)
    assert [way for way, name, _ in bound if name == "x"] == ["in"]  # the first was a host input
    assert copies == []  # the session has written z to the host directly


def test_requests_of_one_batch_are_joined_on_the_device(bound, server, monkeypatch):
    place = FakeDevice(KIND)
    monkeypatch.setattr(instance, "gathered", lambda arrays, number: place.concatenate(arrays))
    more = "dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 60000000 }"

    with server(more=more) as serving:
        streams = [
            serving.stream(
                "add", {"x": place.array(X + i)}, outputs=[DeviceOutput("y")] if i else []
            )
            for i in range(2)
        ]
        found = [next(iter(stream)).tensor("y") for stream in streams]

    assert [tensor.device for tensor in found] == [None, (KIND, 0)]
    for i, tensor in enumerate(found):
        assert np.array_equal(tensor.array, 2 * (X + i))
    assert place.copies == 0  # the output is the session's


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_requests_of_one_batch_are_joined_on_the_host_without_cupy():
    assert device.gathered([X, X], 0) is NotImplemented


@pytest.mark.parametrize(
    "kind",
    [each.number for each in dtypes.ALL if each not in (dtypes.BYTES, dtypes.BF16)],
)
def test_every_datatype_of_numpy_is_unchanged(kind):
    dtype = dtypes.BY_NUMBER[kind]
    array = np.ones((2, 3), dtype.numpy)
    value = ort.OrtValue.ortvalue_from_numpy(array)

    found = device.OnDevice(value, dtype, PLACE)

    assert dlpack.described(found) == (dtype, (2, 3))
    seen = dlpack.array_info(found.__dlpack__())
    assert (seen.dtype, seen.device) == (dtype, (KIND, 0))
    assert np.array_equal(dlpack.to_host(found), array)


def test_memory_exported_from_an_output_outlives_it():
    value = ort.OrtValue.ortvalue_from_numpy(X)
    found = device.OnDevice(value, dtypes.FP32, device.Place("cpu", dlpack.CPU, 0))

    array = np.from_dlpack(found)
    value = found = None

    assert np.array_equal(array, X)


def test_instances_on_the_host_use_host_memory(server):
    with server() as serving:
        found = serving.infer(
            "twice", {"x": FakeDevice(KIND).array(X)}, outputs=[DeviceOutput("z")]
        )

    assert type(found["z"]) is np.ndarray and np.array_equal(found["z"], 4 * X)


@pytest.mark.gpu
def test_two_steps_on_a_gpu_do_not_leave_it(server):
    cupy = pytest.importorskip("cupy")
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        pytest.skip("this onnxruntime has no CUDA")

    with server(group="KIND_GPU") as serving:
        found = serving.infer(
            "twice",
            {"x": cupy.asarray(X)},
            outputs=[
                DeviceOutput("z"),
            ],
        )

        assert found.tensor("z").device == (dlpack.CUDA, 0)
        assert np.array_equal(cupy.from_dlpack(found["z"]).get(), 4 * X)
        assert np.array_equal(serving.infer("twice", {"x": X})["z"], 4 * X)
