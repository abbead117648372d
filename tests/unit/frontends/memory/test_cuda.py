"""Memory of GPUs that clients share: what is opened and refused, where its bytes are read and written.

The device is played; what a real one does is in tests/integration/memory/test_gpu.py.
"""

import gc
import sys

import numpy as np
import pytest
from core_testing.fake_device import FakeDevice
from core_testing.fake_runtime import FakeRuntime

from core import dtypes
from core.devices import dlpack
from core.errors import CoreError, Kind
from core.pipeline.answers.placement import place
from core.tensor import DeviceTensor, Tensor
from frontends.shared.memory import SharedMemoryRegions
from frontends.shared.memory.cuda import CudaRegions, DeviceStatus
from frontends.shared.memory.device_runtime import DeviceRuntime, NoRuntime, find_runtime

FLOATS = np.arange(16, dtype=np.float32)


@pytest.fixture
def runtime():
    return FakeRuntime(FakeDevice())


@pytest.fixture
def cuda(regions, runtime):
    return CudaRegions(regions, (0,), lambda: runtime)


@pytest.fixture
async def shared(cuda, runtime):
    """A region "r" of sixteen floats, as its client sees it."""
    handle, memory = runtime.share(FLOATS)
    await cuda.register("r", handle, 0, 64)
    return memory


async def refusal(work, kind=Kind.INVALID):
    with pytest.raises(CoreError) as caught:
        await work
    assert caught.value.kind is kind
    return caught.value.message


class TestRegister:
    async def test_a_region_is_listed_as_it_was_registered(self, regions, shared):
        assert (
            regions.status(kind="cuda") == regions.status("r", "cuda") == [DeviceStatus("r", 0, 64)]
        )

    @pytest.mark.parametrize("change", [{"device": 1}, {"byte_size": 65}, {"byte_size": 0}])
    async def test_what_is_not_there_is_refused_and_not_kept_open(
        self, cuda, regions, runtime, change
    ):
        handle, _ = runtime.share(FLOATS)

        text = await refusal(
            cuda.register(**{"name": "r", "handle": handle, "device": 0, "byte_size": 64, **change})
        )

        assert text == "failed to register shared memory region 'r': invalid args"
        gc.collect()
        assert (regions.status(kind="cuda"), runtime.opened) == ([], [])

    async def test_a_handle_that_the_driver_does_not_know_is_refused(self, cuda, caplog):
        text = await refusal(cuda.register("r", bytes(64), 0, 64))

        assert text == "failed to register shared memory region: invalid args"
        assert "failed to open CUDA IPC handle: cudaErrorInvalidValue" in caplog.text

    @pytest.mark.parametrize("handle", [b"", bytes(63), bytes(65)])
    async def test_a_handle_has_64_bytes(self, cuda, handle):
        assert "invalid args" in await refusal(cuda.register("r", handle, 0, 64))

    async def test_a_name_is_taken_once_whatever_has_it(
        self, cuda, regions, runtime, shared, client
    ):
        text = await refusal(cuda.register("r", bytes(64), 0, 64), Kind.ALREADY_EXISTS)
        with pytest.raises(CoreError, match="shared memory region 'r' already in manager"):
            regions.register("r", client.create(), 0, 64)

        assert text == "shared memory region 'r' already in manager"

    async def test_a_name_is_needed(self, cuda):
        assert await refusal(cuda.register("", bytes(64), 0, 64)) == (
            "'region name' is necessary to register cuda shared memory region"
        )

    async def test_without_gpus_nothing_is_registered(self, regions):
        cuda = CudaRegions(regions)

        assert await refusal(cuda.register("r", bytes(64), 0, 64)) == (
            "failed to register CUDA shared memory region: 'r', GPUs not supported"
        )
        regions.unregister("r", "cuda")
        assert regions.status(kind="cuda") == []

    async def test_without_cupy_nothing_is_registered_and_the_log_says_what_to_install(
        self, regions, caplog, monkeypatch
    ):
        monkeypatch.setitem(sys.modules, "cupy", None)

        text = await refusal(CudaRegions(regions, (0,)).register("r", bytes(64), 0, 64))

        assert text.endswith("GPUs not supported")
        assert "pip install cupy" in caplog.text

    async def test_without_leave_nothing_is_registered(self, runtime):
        cuda = CudaRegions(SharedMemoryRegions(allowed=False), (0,), lambda: runtime)

        text = await refusal(cuda.register("r", bytes(64), 0, 64), Kind.UNSUPPORTED)

        assert text.startswith("Client shared memory is disabled.")


class TestKinds:
    async def test_each_kind_lists_and_forgets_its_own(self, regions, shared, client):
        regions.register("s", client.create(), 0, 64)

        assert [each.name for each in regions.status()] == ["s"]
        regions.unregister("s", "cuda")
        regions.unregister("r")
        assert len(regions.status() + regions.status(kind="cuda")) == 2
        regions.unregister(kind="cuda")
        assert ([each.name for each in regions.status()], regions.status(kind="cuda")) == (
            ["s"],
            [],
        )

    async def test_the_status_says_what_kind_a_region_is_of(self, regions, shared, client):
        regions.register("s", client.create(), 0, 64)

        for kind, name, text in (
            ("cuda", "s", "'s' is registered as system shared memory, not CUDA shared memory"),
            (
                "system",
                "r",
                "'r' is registered as CUDA shared memory, not system shared memory",
            ),
            ("cuda", "x", "Unable to find cuda shared memory region: 'x'"),
        ):
            with pytest.raises(CoreError, match=text) as caught:
                regions.status(name, kind)
            assert caught.value.kind is Kind.NOT_FOUND


class TestInputs:
    async def test_a_tensor_is_the_memory_itself(self, regions, runtime, shared):
        tensor = regions.read("r", 8, 8, dtypes.FP32).tensor("x", dtypes.FP32, (2,), "m")
        seen = dlpack.array_info(dlpack.exported(tensor.value))

        assert isinstance(tensor, DeviceTensor)
        assert seen == (dtypes.FP32, (2,), shared.ctypes.data + 8, (1,), (dlpack.CUDA, 0))
        assert runtime.device.copies == 0

    async def test_it_is_copied_to_the_host_once_for_who_wants_it_there(
        self, regions, runtime, shared
    ):
        tensor = regions.read("r", 8, 8, dtypes.FP32).tensor("x", dtypes.FP32, (1, 2), "m")

        assert tensor.array.tolist() == [[2, 3]]
        assert bytes(tensor.raw) == FLOATS[2:4].tobytes()
        assert runtime.device.copies == 1

    async def test_rows_of_it_stay_on_the_device(self, regions, runtime, shared):
        tensor = regions.read("r", 0, 64, dtypes.FP32).tensor("x", dtypes.FP32, (4, 4), "m")

        seen = dlpack.array_info(dlpack.exported(tensor.rows(2, 1).value))

        assert (seen.shape, seen.address) == ((1, 4), shared.ctypes.data + 32)

    async def test_bit_patterns_are_bf16_there_and_here(self, regions, shared):
        tensor = regions.read("r", 0, 4, dtypes.BF16).tensor("x", dtypes.BF16, (2,), "m")

        assert dlpack.array_info(dlpack.exported(tensor.value)).dtype is dtypes.BF16
        assert tensor.array.tolist() == FLOATS[:1].view(np.uint16).tolist()

    async def test_elements_of_bytes_are_read_on_the_host(self, cuda, regions, runtime):
        handle, _ = runtime.share(np.frombuffer(b"\1\0\0\0a\2\0\0\0bc", np.uint8))
        await cuda.register("w", handle, 0, 11)

        assert regions.read("w", 5, 6, dtypes.BYTES) == b"\2\0\0\0bc"

    async def test_the_bytes_must_be_those_of_the_shape(self, regions, shared):
        with pytest.raises(CoreError, match=r"for model 'm'\. Expected 12, got 8"):
            regions.read("r", 0, 8, dtypes.FP32).tensor("x", dtypes.FP32, (3,), "m")

    @pytest.mark.parametrize("offset,byte_size", [(64, 0), (60, 5), (-1, 1), (2**64, 1)])
    async def test_nothing_outside_of_the_region_is_touched(
        self, regions, shared, offset, byte_size
    ):
        for call in (
            lambda: regions.read("r", offset, byte_size, None),
            lambda: regions.view("r", offset, byte_size),
        ):
            with pytest.raises(CoreError, match="Invalid offset"):
                call()


class TestOutputs:
    async def test_an_output_of_the_host_is_copied_there(self, regions, runtime, shared):
        place(Tensor.of("y", np.array([7, 8], np.float32)), regions.view("r", 8, 12))

        assert shared[:6].tolist() == [0, 1, 7, 8, 4, 5]
        assert (runtime.filled, runtime.moved) == (1, 0)

    async def test_an_output_of_a_device_does_not_go_by_way_of_the_host(
        self, regions, runtime, shared
    ):
        place(
            Tensor.of("y", runtime.device.array(np.array([7, 8], np.float32))),
            regions.view("r", 8, 8),
        )

        assert shared[:6].tolist() == [0, 1, 7, 8, 4, 5]
        assert (runtime.filled, runtime.moved, runtime.device.copies) == (0, 1, 0)

    async def test_elements_of_bytes_are_copied_as_they_are_on_the_wire(self, regions, shared):
        place(Tensor.of("y", np.array([b"ab"], object)), regions.view("r", 0, 64))

        assert shared.tobytes()[:6] == b"\2\0\0\0ab"

    async def test_one_that_does_not_fit_is_refused(self, regions, shared):
        with pytest.raises(CoreError, match=r"output 'y' \(4 bytes\) should be at least 8 bytes"):
            place(Tensor.of("y", np.zeros(2, np.float32)), regions.view("r", 0, 4))

        assert shared.tolist() == FLOATS.tolist()

    async def test_nothing_is_copied_for_an_empty_one(self, regions, runtime, shared):
        place(Tensor.of("y", np.zeros(0, np.float32)), regions.view("r", 0, 0))

        assert (runtime.filled, runtime.moved) == (0, 0)


class TestUnregister:
    async def test_a_handle_stays_open_as_long_as_somebody_uses_it(self, regions, runtime, shared):
        tensor = regions.read("r", 0, 8, dtypes.FP32).tensor("x", dtypes.FP32, (2,), "m")
        capsule = dlpack.exported(tensor.value)

        regions.unregister("r", "cuda")
        assert regions.status(kind="cuda") == []
        del tensor
        assert len(runtime.opened) == 1
        del capsule
        gc.collect()

        assert runtime.opened == []

    async def test_a_name_is_free_while_a_request_uses_its_old_memory(
        self, cuda, regions, runtime, shared
    ):
        before = regions.view("r", 0, 4)
        regions.unregister("r", "cuda")
        handle, _ = runtime.share(FLOATS + 1)

        await cuda.register("r", handle, 0, 64)

        assert before.get().view(np.float32).tolist() == [0]
        assert regions.view("r", 0, 4).get().view(np.float32).tolist() == [1]

    async def test_a_handle_that_cannot_be_closed_is_a_line_in_the_log(
        self, regions, runtime, shared, caplog
    ):
        runtime.opened.clear()

        regions.unregister(kind="cuda")
        gc.collect()

        assert "failed to close CUDA IPC handle" in caplog.text


class Runtime:
    """cupy.cuda.runtime, as far as it is used."""

    def __init__(self, calls):
        self._calls = calls

    def __getattr__(self, name):
        def call(*arguments):
            self._calls.append((name, *arguments))
            return 4096

        return call


class Cuda:
    def __init__(self):
        self.calls = []
        self.runtime = Runtime(self.calls)

    def Device(self, number):
        calls = self.calls

        class Current:
            def __enter__(self):
                calls.append(("device", number))

            def __exit__(self, *_):
                pass

        return Current()


def test_cupy_is_called_with_what_cuda_expects_on_the_device_of_the_memory():
    cuda = Cuda()
    runtime = DeviceRuntime(cuda, None)
    target = np.zeros(8, np.uint8)

    assert runtime.open(b"h" * 64, 1) == 4096
    runtime.to_host(target, 4096, 1)
    runtime.from_host(4096, target, 1)
    runtime.between(4096, 1, 8192, 0, 8)
    runtime.close(4096, 1)

    assert cuda.calls == [
        ("device", 1),
        ("ipcOpenMemHandle", b"h" * 64, 1),
        ("device", 1),
        ("memcpy", target.ctypes.data, 4096, 8, 2),
        ("device", 1),
        ("memcpy", 4096, target.ctypes.data, 8, 1),
        ("streamSynchronize", 0),
        ("device", 1),
        ("memcpyPeer", 4096, 1, 8192, 0, 8),
        ("streamSynchronize", 0),
        ("device", 1),
        ("ipcCloseMemHandle", 4096),
    ]


def test_a_machine_without_driver_says_so(monkeypatch):
    class NoDriver(RuntimeError):
        pass

    def refuse(*_):
        raise NoDriver("cudaErrorInsufficientDriver")

    cupy = type(
        "cupy",
        (),
        {"cuda": type("cuda", (), {"runtime": type("r", (), {"getDeviceCount": refuse})})},
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)

    with pytest.raises(NoRuntime, match="NoDriver: cudaErrorInsufficientDriver"):
        find_runtime()
