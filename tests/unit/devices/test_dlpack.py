"""DLPack: the content of capsules, shared memory, and copies to the host by each library's method."""

import gc
import weakref

import numpy as np
import pytest
from core_testing.fake_device import FakeDevice
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core import dtypes
from core.devices import dlpack

NUMERIC = [each for each in dtypes.ALL if each is not dtypes.BYTES]

shaped = st.sampled_from(NUMERIC).flatmap(
    lambda dtype: st.tuples(
        st.just(dtype),
        arrays.arrays(dtype.numpy, arrays.array_shapes(min_dims=0, min_side=0, max_side=4)),
    )
)


class Exporter:
    """An array with only the methods of DLPack."""

    def __init__(self, array, dtype=None, device=(dlpack.CUDA, 0)):
        self.array = array
        self.dtype_of = dtype or dtypes.of_numpy(array.dtype)
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None):
        array = self.array
        return dlpack.lend(array.ctypes.data, self.dtype_of, array.shape, self.device, array)


@given(shaped)
def test_array_info_describes_lent_memory(case):
    dtype, array = case
    array = np.ascontiguousarray(array).reshape(array.shape)

    found = dlpack.array_info(dlpack.lend(array.ctypes.data, dtype, array.shape, (2, 3), array))

    assert (found.dtype, found.shape, found.device) == (dtype, array.shape, (2, 3))
    assert found.address == array.ctypes.data and found.in_order


@given(shaped)
def test_host_memory_of_a_capsule_is_an_array_of_every_datatype(case):
    dtype, array = case
    array = np.ascontiguousarray(array).reshape(array.shape)

    found = dlpack.host_view(dlpack.lend(array.ctypes.data, dtype, array.shape, (1, 0), array))

    assert found.dtype == dtype.numpy and found.shape == array.shape
    assert found.tobytes() == array.tobytes()
    assert found.size == 0 or not found.flags.writeable


def test_numpy_and_torch_read_lent_memory():
    torch = pytest.importorskip("torch")
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    exporter = Exporter(array, device=(dlpack.CPU, 0))

    assert np.array_equal(np.from_dlpack(exporter), array)
    assert np.array_equal(torch.from_dlpack(exporter).numpy(), array)


def test_shared_memory_is_kept_as_long_as_it_is_used():
    array = np.arange(4.0)
    alive = weakref.ref(array)
    exporter = Exporter(array, device=(dlpack.CPU, 0))
    taken = np.from_dlpack(exporter)
    exporter = array = None
    gc.collect()

    assert alive() is not None and taken.sum() == 6

    taken = None
    gc.collect()

    assert alive() is None


def test_a_capsule_that_its_consumer_refuses_frees_its_memory():
    array = np.arange(4.0)
    alive = weakref.ref(array)
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        np.from_dlpack(Exporter(array, device=(12, 0)))
    array = None
    gc.collect()

    assert alive() is None


@pytest.mark.parametrize("value", [None, 3, object()])
def test_an_object_that_is_not_a_capsule_is_refused(value):
    with pytest.raises(ValueError, match="not a DLPack capsule"):
        dlpack.array_info(value)


def test_a_consumed_capsule_is_refused():
    array = np.zeros(2)
    capsule = array.__dlpack__()

    class Once:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            return capsule

    np.from_dlpack(Once())

    with pytest.raises(ValueError, match="taken before"):
        dlpack.array_info(capsule)


def test_an_unconsumed_capsule_frees_its_memory():
    array = np.arange(4.0)
    alive = weakref.ref(array)
    capsule = dlpack.lend(array.ctypes.data, dtypes.FP64, array.shape, (2, 0), array)
    array = None

    assert alive() is not None

    capsule = None  # noqa: F841
    gc.collect()

    assert alive() is None


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
def test_an_array_without_attributes_is_described_by_its_capsule(dtype):
    array = np.zeros((2, 3), dtype.numpy)

    assert dlpack.described(Exporter(array, dtype)) == (dtype, (2, 3))


def test_torch_arrays_describe_themselves():
    torch = pytest.importorskip("torch")

    assert dlpack.described(torch.zeros(2, 3, dtype=torch.bfloat16)) == (dtypes.BF16, (2, 3))
    assert dlpack.described(torch.zeros(1, dtype=torch.bool)) == (dtypes.BOOL, (1,))
    with pytest.raises(TypeError, match=r"torch\.complex64 are of no datatype"):
        dlpack.described(torch.zeros(1, dtype=torch.complex64))


def test_elements_that_the_protocol_does_not_have_are_named():
    class Complex(Exporter):
        def __dlpack__(self, *, stream=None):
            return np.zeros(2, np.complex64).__dlpack__()

    with pytest.raises(TypeError, match="type 5 with 64 bits"):
        dlpack.described(Complex(np.zeros(2)))


def test_a_view_is_a_part_of_the_memory_without_a_copy():
    array = np.arange(12, dtype=np.int32).reshape(4, 3)
    source = Exporter(array, device=(dlpack.CPU, 0))
    view = dlpack.View(source, dtypes.INT32, (2, 3), first=3)

    found = np.from_dlpack(view)

    assert np.array_equal(found, array[1:3]) and np.shares_memory(found, array)
    assert (view.dtype, view.shape) == ("int32", (2, 3))


def test_a_view_is_copied_to_the_host_by_the_method_of_its_source():
    view = dlpack.View(FakeDevice().array(np.arange(6.0).reshape(3, 2)), dtypes.FP64, (2,), first=2)

    assert dlpack.to_host(view).tolist() == [2.0, 3.0]


def test_a_view_passes_the_stream_of_its_consumer_on():
    asked = []

    class Streams(Exporter):
        def __dlpack__(self, *, stream=None):
            asked.append(stream)
            return super().__dlpack__()

    dlpack.View(Streams(np.zeros(4)), dtypes.FP64, (2, 2)).__dlpack__(stream=77)

    assert asked == [77]


def test_a_view_refuses_memory_that_is_not_in_order():
    array = np.zeros((3, 4))[:, ::2]

    with pytest.raises(BufferError, match="not in C order"):
        dlpack.View(array, dtypes.FP64, (3,)).__dlpack__()


VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


class Asked(Exporter):
    """Supports the newest method: the export takes the host as its target."""

    def __dlpack__(self, *, stream=None, dl_device=None, copy=None):
        if dl_device == (dlpack.CPU, 0) and copy:
            return dlpack.lend(VALUES.ctypes.data, dtypes.FP32, (2, 3), (1, 0), VALUES)
        return super().__dlpack__()


class Refuses(Exporter):
    """Knows the arguments, but no way to the host."""

    def __dlpack__(self, *, stream=None, dl_device=None, copy=None):
        raise BufferError("cannot be exported to another device")

    def get(self):
        return VALUES


class Get(Exporter):
    def get(self):
        return VALUES


class Cpu(Exporter):
    def cpu(self):
        return Exporter(VALUES, device=(dlpack.CPU, 0))


class ToDevice(Exporter):
    def to_device(self, device):
        assert device == "cpu"
        return VALUES


class Numpy(Exporter):
    def numpy(self):
        return VALUES


class Array(Exporter):
    def __array__(self, *_, **__):
        return VALUES


@pytest.mark.parametrize("kind", [Asked, Refuses, Get, Cpu, ToDevice, Numpy, Array])
def test_every_copy_method_is_supported(kind):
    found = dlpack.to_host(kind(np.zeros((2, 3), np.float32)))

    assert found.dtype == np.float32 and np.array_equal(found, VALUES)


def test_an_array_without_a_copy_method_is_named():
    with pytest.raises(TypeError, match=r"Exporter has no way to host memory: neither __dlpack__"):
        dlpack.to_host(Exporter(np.zeros(2)))


def test_bfloat16_of_torch_comes_as_bit_patterns():
    torch = pytest.importorskip("torch")

    found = dlpack.to_host(torch.tensor([1.0, -2.0], dtype=torch.bfloat16))

    assert found.dtype == np.uint16 and found.tolist() == [0x3F80, 0xC000]


def test_the_fake_device_hides_its_memory():
    array = FakeDevice().array([1.0, 2.0])

    with pytest.raises(TypeError, match="implicit"):
        np.asarray(array)
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        np.from_dlpack(array)
    assert array.place.copies == 0
