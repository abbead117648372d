"""A program and its server hand arrays on devices to each other."""

import asyncio

import numpy as np
import pytest
from core_testing.fake_device import DeviceArray, FakeDevice
from flow.in_process.conftest import ROW

import core
from core.devices.visible import gpus
from core.request import DeviceOutput

KEPT = [DeviceOutput("y")]


@pytest.fixture
def place():
    return FakeDevice()


class Twice:
    """y = 2 x, on the device if x is there or if the function has a `place`; keeps its inputs."""

    def __init__(self, place=None):
        self.place = place
        self.given = []

    def __call__(self, x):
        self.given.append(x)
        if isinstance(x, DeviceArray):
            return x.apply(lambda held: 2 * held)
        return 2 * x if self.place is None else self.place.array(2 * x)


def test_an_input_on_a_device_is_numpy_for_a_function_by_default(server, place, x):
    function = Twice()
    server.bind("m", function, **ROW)

    assert np.array_equal(server.infer("m", {"x": place.array(x)})["y"], 2 * x)
    assert type(function.given[0]) is np.ndarray and place.copies == 1


def test_a_function_with_memory_device_gets_the_same_array(server, place, x):
    function = Twice()
    server.bind("m", function, memory="device", **ROW)
    array = place.array(x)

    answer = server.infer("m", {"x": array}, outputs=KEPT)

    assert function.given == [array] and function.given[0] is array
    assert isinstance(answer["y"], DeviceArray) and place.copies == 0
    assert np.array_equal(answer.tensor("y").array, 2 * x) and place.copies == 1


def test_a_function_may_return_arrays_on_a_device(server, place, x):
    server.bind("m", Twice(place), **ROW)

    answer = server.infer("m", {"x": x})

    assert type(answer["y"]) is np.ndarray and np.array_equal(answer["y"], 2 * x)
    assert place.copies == 1


def test_functions_pass_arrays_on_the_device(server, place, x):
    second = Twice()
    server.bind("first", Twice(place), **ROW)
    server.bind("second", second, memory="device", **ROW)

    between = server.infer("first", {"x": x}, outputs=KEPT)["y"]
    last = server.infer("second", {"x": between})

    assert second.given[0] is between
    assert np.array_equal(last["y"], 4 * x) and place.copies == 1


def test_an_example_may_answer_on_a_device(server, place, x):
    server.bind("m", Twice(place), example={"x": x})

    assert np.array_equal(server.infer("m", {"x": x})["y"], 2 * x)


def test_wrong_answers_on_a_device_are_refused(server, place, x):
    server.bind("shape", lambda x: place.array(np.zeros((2, 2), np.float32)), **ROW)
    server.bind("type", lambda x: place.array(np.zeros(2)), **ROW)

    with pytest.raises(core.CoreError, match=r"shape \[2, 2\], which should be \[-1\]"):
        server.infer("shape", {"x": x})
    with pytest.raises(core.CoreError, match="'y' as FP64, which should be FP32"):
        server.infer("type", {"x": x})


def test_a_generator_takes_and_gives_arrays_of_a_device(server, place, x):
    def halves(x):
        yield x[:2]
        yield x[2:]

    server.bind("m", halves, memory="device", **ROW)

    found = [answer["y"] for answer in server.stream("m", {"x": place.array(x)}, outputs=KEPT)]

    assert [type(each) for each in found] == [DeviceArray, DeviceArray]
    assert [each._held.tolist() for each in found] == [[0, 1], [2, 3]] and place.copies == 0


def test_a_coroutine_sends_arrays_on_a_device(server, place, x):
    server.bind("m", Twice(), memory="device", **ROW)

    answer = asyncio.run(server.infer_async("m", {"x": place.array(x)}, outputs=KEPT))

    assert isinstance(answer["y"], DeviceArray) and place.copies == 0


def test_torch_arrays_on_the_host_are_no_device(server, x):
    torch = pytest.importorskip("torch")
    server.bind("m", lambda x: torch.from_numpy(x.copy()) * 2, memory="device", **ROW)

    answer = server.infer("m", {"x": torch.from_numpy(x.copy())}, outputs=KEPT)

    assert type(answer["y"]) is np.ndarray and np.array_equal(answer["y"], 2 * x)


def test_an_unknown_memory_is_refused(server):
    with pytest.raises(core.CoreError, match="memory='gpu' is none of host, device"):
        server.bind("m", Twice(), memory="gpu", **ROW)


@pytest.mark.gpu
def test_arrays_of_a_real_gpu_stay_there(server, x):
    cupy = pytest.importorskip("cupy")
    if not gpus():
        pytest.skip("this process sees no GPU")
    server.bind("first", lambda x: 2 * cupy.asarray(x), **ROW)
    server.bind("second", lambda x: 2 * x, memory="device", **ROW)

    between = server.infer("first", {"x": x}, outputs=KEPT)["y"]
    last = server.infer("second", {"x": between}, outputs=KEPT)["y"]

    assert isinstance(between, cupy.ndarray) and isinstance(last, cupy.ndarray)
    assert np.array_equal(last.get(), 4 * x)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool"])
def test_tensors_of_torch_on_a_real_gpu_are_copied_for_a_client(server, dtype):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    name = {"float32": "FP32", "bfloat16": "BF16", "bool": "BOOL"}[dtype]
    spec = {"x": (name, [-1])}, {"y": (name, [-1])}
    given = torch.tensor([1, 0, 1], dtype=getattr(torch, dtype), device="cuda")
    torch.cuda.synchronize()
    server.bind("m", lambda x: x, inputs=spec[0], outputs=spec[1], memory="device")

    answer = server.infer("m", {"x": given})

    bits = given.cpu().view(torch.uint16) if dtype == "bfloat16" else given.cpu()
    assert answer["y"].tolist() == bits.tolist()
