"""DeviceTensor: a tensor that stays where it is, and is copied to the host once when that is needed."""

import gc
import threading

import numpy as np
import pytest
from core_testing.fake_device import DeviceArray, FakeDevice
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core import dtypes
from core.devices import dlpack
from core.errors import CoreError, Kind
from core.tensor import Tensor, is_on_device

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def split_rows(whole, rows):
    """The rows of several requests, one behind the other."""
    firsts = [sum(rows[:i]) for i in range(len(rows))]
    return [whole.rows(first, count) for first, count in zip(firsts, rows, strict=True)]


class Opaque:
    """An array of a device that only exports: no slices, no shapes, no way to the host."""

    def __init__(self, array):
        self._array = array

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __dlpack__(self, **how):
        return self._array.__dlpack__(**how)


def test_a_tensor_of_an_array_on_a_device_is_the_array():
    place = FakeDevice()
    array = place.array(X)

    tensor = Tensor.of("x", array)

    assert tensor.value is array
    assert (tensor.dtype, tensor.shape, tensor.device) == (dtypes.FP32, (2, 3), (dlpack.CUDA, 0))
    assert tensor.byte_size == 24 and not tensor.has_raw
    assert place.copies == 0


@pytest.mark.parametrize("kind", [dlpack.CPU, dlpack.CUDA_HOST, dlpack.ROCM_HOST])
def test_memory_that_the_host_can_read_is_not_a_device(kind):
    assert not is_on_device(FakeDevice(kind).array(X))


@pytest.mark.parametrize("kind", [dlpack.CUDA, dlpack.ROCM, dlpack.CUDA_MANAGED, 12, 14])
def test_other_memory_is_a_device(kind):
    assert Tensor.of("x", FakeDevice(kind, 1).array(X)).device == (kind, 1)


def test_an_ordinary_tensor_has_no_device():
    tensor = Tensor.of("x", X)

    assert tensor.device is None and tensor.value is tensor.array


def test_bytes_of_a_device_tensor_take_one_copy():
    place = FakeDevice()
    tensor = Tensor.of("x", place.array(X))

    assert bytes(tensor.raw) == X.tobytes()
    assert np.array_equal(tensor.array, X)
    assert bytes(tensor.raw) == X.tobytes()
    assert tensor.has_raw and not tensor.array.flags.writeable
    assert place.copies == 1


def test_names_shapes_and_rows_share_the_copy():
    place = FakeDevice()
    whole = Tensor.of("x", place.array(X))
    parts = split_rows(whole, [1, 1])

    assert np.array_equal(whole.renamed("y").array, X)
    assert np.array_equal(whole.reshaped((3, 2)).array, X.reshape(3, 2))
    assert np.array_equal(parts[1].array, X[1:])
    assert place.copies == 1


def test_reshaping_and_renaming_do_not_copy():
    place = FakeDevice()
    tensor = Tensor.of("x", place.array(X)).renamed("y").reshaped((6,))

    assert (tensor.name, tensor.shape) == ("y", (6,))
    assert tensor.value.shape == (6,) and isinstance(tensor.value, DeviceArray)
    assert place.copies == 0


@given(
    arrays.arrays(
        st.sampled_from([d.numpy for d in dtypes.ALL if d not in (dtypes.BYTES, dtypes.BF16)]),
        arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5),
    ),
    st.data(),
)
def test_rows_equal_those_of_a_host_tensor(array, data):
    place = FakeDevice()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(array)), max_size=4)))
    rows = np.diff([0, *cuts, len(array)]).tolist()

    parts = split_rows(Tensor.of("x", place.array(array)), rows)

    first = 0
    for part, count in zip(parts, rows, strict=True):
        expected = array[first : first + count]
        assert part.shape == expected.shape
        assert part.value._held.tobytes() == expected.tobytes()
        first += count
    assert place.copies == 0
    first = 0
    for part, count in zip(parts, rows, strict=True):
        expected = Tensor.of("x", np.ascontiguousarray(array[first : first + count]))
        assert bytes(part.raw) == bytes(expected.raw)
        first += count
    assert place.copies <= 1


def test_an_array_that_only_exports_has_rows_and_shapes_as_views():
    torch = pytest.importorskip("torch")
    held = X.copy()

    class OnHost:  # as a device would be, for a consumer that can look
        def __dlpack_device__(self):
            return (12, 0)

        def __dlpack__(self, **_):
            return dlpack.lend(held.ctypes.data, dtypes.FP32, held.shape, (1, 0), held)

    parts = split_rows(Tensor.of("x", OnHost()), [1, 1])

    assert torch.equal(
        torch.utils.dlpack.from_dlpack(parts[1].value.__dlpack__()), torch.tensor(X[1:])
    )
    shaped = parts[1].reshaped((3, 1)).value
    assert torch.utils.dlpack.from_dlpack(shaped.__dlpack__()).shape == (3, 1)


def test_an_array_without_a_copy_method_is_an_error_that_names_the_tensor():
    tensor = Tensor.of("scores", Opaque(FakeDevice().array(X)))

    with pytest.raises(CoreError, match=r"'scores' is on device \(2, 0\).*no way to host") as found:
        tensor.raw  # noqa: B018

    assert found.value.kind is Kind.INTERNAL


def test_a_failed_copy_is_tried_again():
    class Broken(DeviceArray):
        def get(self):
            raise OSError("device lost")

    place = FakeDevice()
    tensor = Tensor.of("x", Broken(place, X))

    for _ in range(2):
        with pytest.raises(CoreError, match="OSError: device lost"):
            tensor.array  # noqa: B018


def test_a_copy_of_another_shape_is_not_passed_on():
    class Wrong(DeviceArray):
        def get(self):
            return np.zeros(5, np.float32)

    with pytest.raises(CoreError, match=r"FP32\[2, 3\] on device \(2, 0\), its copy.*\[5\]"):
        Tensor.of("x", Wrong(FakeDevice(), X)).raw  # noqa: B018


def test_elements_that_the_protocol_does_not_have_are_refused():
    with pytest.raises(CoreError, match=r"tensor 'x'.*complex64"):
        Tensor.of("x", FakeDevice().array(X.astype(np.complex64)))


def test_bit_patterns_of_bf16_keep_their_datatype():
    tensor = Tensor.of("x", FakeDevice().array(np.array([0x3F80], np.uint16)), dtypes.BF16)

    assert tensor.dtype is dtypes.BF16 and bytes(tensor.raw) == b"\x80\x3f"


def test_a_torch_tensor_without_a_device_is_an_error():
    torch = pytest.importorskip("torch")

    with pytest.raises(ValueError, match="meta"):
        Tensor.of("x", torch.zeros(2, device="meta"))


def test_the_memory_is_freed_with_its_last_tensor():
    place = FakeDevice()
    whole = Tensor.of("x", place.array(X))
    part = split_rows(whole, [1, 1])[0]
    whole = None
    gc.collect()

    assert place.alive == 1

    host = part.on_host()
    part = None
    gc.collect()

    assert place.alive == 0 and np.array_equal(host.array, X[:1]) and type(host) is Tensor


def test_threads_that_need_a_copy_share_it():
    entered, go = threading.Event(), threading.Event()

    class Slow(DeviceArray):
        def get(self):
            entered.set()
            go.wait(10)
            return super().get()

    place = FakeDevice()
    tensor = Tensor.of("x", Slow(place, X))
    found = []
    threads = [threading.Thread(target=lambda: found.append(bytes(tensor.raw))) for _ in range(3)]

    for thread in threads:
        thread.start()
    entered.wait(10)
    go.set()
    for thread in threads:
        thread.join(10)

    assert found == [X.tobytes()] * 3 and place.copies == 1
