"""triton_python_backend_utils.Tensor, with numpy and with DLPack."""

import ctypes
import ctypes.util
import gc
import weakref

import ml_dtypes
import numpy as np
import pytest
import triton_python_backend_utils as pb_utils
from backend_python.api import datatypes, dlpack

TYPES = [
    np.dtype(code)
    for code in ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]
]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_tensor_shares_the_memory_of_its_array(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    tensor = pb_utils.Tensor("t", array)

    assert tensor.as_numpy() is array
    assert (tensor.name(), tensor.shape(), tensor.is_cpu()) == ("t", [2, 3], True)
    assert datatypes.triton_to_numpy_type(tensor.triton_dtype()) is dtype.type


def test_an_array_that_is_not_contiguous_is_copied():
    tensor = pb_utils.Tensor("t", np.arange(6).reshape(2, 3).T)

    assert tensor.as_numpy().flags.c_contiguous
    assert tensor.as_numpy().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_strings_are_objects_or_bytes_of_fixed_width():
    assert pb_utils.Tensor("t", np.array(["a", b"b"], object)).triton_dtype() == 13
    assert pb_utils.Tensor("t", np.array([b"ab", b"c"])).as_numpy().tolist() == [b"ab", b"c"]


@pytest.mark.parametrize(
    "array",
    [np.zeros(1, complex), np.array(["text"]), np.zeros(1, ">f4"), np.zeros(1, "M8[s]"),
     np.zeros(1, "g"), np.zeros(1, [("a", "f4")])],
    ids=lambda array: str(array.dtype),
)  # fmt: skip
def test_a_type_that_the_protocol_lacks_is_refused(array):
    with pytest.raises(pb_utils.TritonModelException, match=r"^NumPy dtype is not supported\.$"):
        pb_utils.Tensor("t", array)


def test_a_tensor_needs_a_name_and_an_array():
    with pytest.raises(
        pb_utils.TritonModelException, match=r"^Tensor name cannot be an empty string\.$"
    ):
        pb_utils.Tensor("", np.zeros(1))
    for arguments in (("t", [1]), (3, [1]), ("t", np.float32(1))):
        with pytest.raises(TypeError, match="takes the name"):
            pb_utils.Tensor(*arguments)
    for name in (3, None, b"\xff"):
        with pytest.raises(TypeError, match=r"^Tensor\(\): the name "):
            pb_utils.Tensor(name, np.zeros(1))


def test_bf16_has_no_numpy_form():
    tensor = pb_utils.Tensor("t", np.array([1, 2], ml_dtypes.bfloat16))

    assert tensor.triton_dtype() == 14
    with pytest.raises(pb_utils.TritonModelException) as error:
        tensor.as_numpy()
    assert str(error.value) == (
        "Tensor dtype is BF16 and cannot be converted to NumPy. "
        "Use to_dlpack() and from_dlpack() instead."
    )


# DLPack ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (), (1, 5, 1)])
def test_numpy_reads_a_tensor_by_dlpack(dtype, shape):
    array = np.ones(shape, dtype)
    tensor = pb_utils.Tensor("t", array)

    read = np.from_dlpack(tensor)

    assert read.dtype == dtype and read.shape == shape
    assert np.array_equal(read, array)
    assert array.size == 0 or np.shares_memory(read, array)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (), (1, 5, 1)])
def test_a_tensor_reads_a_numpy_array_by_dlpack(dtype, shape):
    array = np.ones(shape, dtype)

    tensor = pb_utils.Tensor.from_dlpack("t", array)

    assert np.array_equal(tensor.as_numpy(), array)
    assert array.size == 0 or np.shares_memory(tensor.as_numpy(), array)


def test_a_capsule_can_be_read_once():
    capsule = pb_utils.Tensor("t", np.arange(3)).to_dlpack()

    tensor = pb_utils.Tensor.from_dlpack("u", capsule)

    assert tensor.as_numpy().tolist() == [0, 1, 2]
    with pytest.raises(pb_utils.TritonModelException, match="used before"):
        pb_utils.Tensor.from_dlpack("v", capsule)


def test_bf16_travels_as_its_bits():
    sent = pb_utils.Tensor("t", np.array([1, -2.5], ml_dtypes.bfloat16))

    received = pb_utils.Tensor.from_dlpack("u", sent.to_dlpack())

    assert (received.name(), received.triton_dtype(), received.shape()) == ("u", 14, [2])
    assert bytes(received._wire()) == bytes(sent._wire()) == b"\x80\x3f\x20\xc0"


def test_lent_memory_lives_as_long_as_the_reader():
    exported = len(dlpack._exported)
    array = np.arange(5)
    gone = weakref.ref(array)
    reader = np.from_dlpack(pb_utils.Tensor("t", array))
    del array
    gc.collect()

    assert gone() is not None and reader.tolist() == [0, 1, 2, 3, 4]

    del reader
    gc.collect()
    assert gone() is None
    assert len(dlpack._exported) == exported


def test_memory_of_an_unused_capsule_is_freed():
    array = np.arange(5)
    gone = weakref.ref(array)
    capsule = pb_utils.Tensor("t", array).to_dlpack()
    del array
    assert gone() is not None

    del capsule

    assert gone() is None


def test_borrowed_memory_is_released_with_the_last_view():
    class Lender(np.ndarray):  # its own type, so that it can be watched
        pass

    array = np.arange(5).view(Lender)
    gone = weakref.ref(array)
    tensor = pb_utils.Tensor.from_dlpack("t", array)
    view = tensor.as_numpy()[2:]
    del array, tensor
    gc.collect()

    assert gone() is not None and view.tolist() == [2, 3, 4]

    del view
    gc.collect()
    assert gone() is None


def test_a_read_only_array_can_be_read():
    array = np.arange(3)
    array.flags.writeable = False

    assert pb_utils.Tensor.from_dlpack("t", array).as_numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "value,text",
    [
        (3, "Provided tensor is not supported."),
        (np.zeros((2, 3)).T, "DLPack tensor is not contiguous. Only contiguous DLPack tensors"),
        (np.zeros(2, complex), "data type that is not supported: code 5, 128 bits"),
    ],
    ids=str,
)
def test_unreadable_arrays_are_refused(value, text):
    with pytest.raises(pb_utils.TritonModelException, match=text):
        pb_utils.Tensor.from_dlpack("t", value)


class OnGpu:
    """Presents an array as one in the memory of a GPU."""

    def __init__(self, array, number):
        self.array, self.number, self.streams = array, number, []

    def __dlpack_device__(self):
        return 2, 1

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        size = self.array.itemsize
        steps = tuple(step // size for step in self.array.strides)
        at = self.array.ctypes.data
        return dlpack.lend(at, self.array.shape, steps, self.number, (2, 1), self.array)


@pytest.fixture
def copied(monkeypatch):
    """Return the copies from the GPU: bytes and device."""
    found = []

    def copy_to_host(address, size, device):
        found.append((size, device))
        return np.frombuffer(ctypes.string_at(address, size), np.uint8)

    monkeypatch.setattr("backend_python.api.cuda.copy_to_host", copy_to_host)
    return found


def test_a_tensor_of_a_gpu_stays_there_until_it_leaves_the_model(copied):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    lender = OnGpu(array, 11)

    tensor = pb_utils.Tensor.from_dlpack("t", lender)

    assert (tensor.name(), tensor.shape(), tensor.triton_dtype()) == ("t", [2, 3], 11)
    assert not tensor.is_cpu() and tensor.__dlpack_device__() == (2, 1)
    assert lender.streams == [1]  # the default one, on which it is copied
    with pytest.raises(pb_utils.TritonModelException) as error:
        tensor.as_numpy()
    assert str(error.value) == "Tensor is stored in GPU and cannot be converted to NumPy."
    again = pb_utils.Tensor.from_dlpack("u", pb_utils.Tensor.from_dlpack("u", tensor.to_dlpack()))
    assert (again.name(), again.shape(), again.is_cpu()) == ("u", [2, 3], False)
    assert copied == []

    assert bytes(again._wire()) == array.tobytes()
    assert tensor._values().tolist() == array.tolist()
    assert copied == [(24, 1), (24, 1)]


def test_an_empty_tensor_of_a_gpu_has_no_bytes(copied):
    tensor = pb_utils.Tensor.from_dlpack("t", OnGpu(np.zeros((0, 3), np.int8), 6))

    assert tensor.shape() == [0, 3] and not tensor.is_cpu()
    assert tensor._values().shape == (0, 3)


def test_memory_of_a_gpu_is_given_back_with_its_last_user(copied):
    array = np.arange(5)
    gone = weakref.ref(array)
    tensor = pb_utils.Tensor.from_dlpack("t", OnGpu(array, 9))
    capsule = tensor.to_dlpack()
    del array, tensor
    gc.collect()
    assert gone() is not None

    del capsule
    gc.collect()
    assert gone() is None


def test_without_a_driver_a_tensor_of_a_gpu_raises_an_error():
    if ctypes.util.find_library("cuda"):
        pytest.skip("there is a driver")
    tensor = pb_utils.Tensor.from_dlpack("t", OnGpu(np.arange(5), 9))

    with pytest.raises(pb_utils.TritonModelException, match="GPU tensor cannot be used: libcuda"):
        tensor._wire()


@pytest.mark.gpu
def test_a_tensor_of_pytorch_leaves_its_gpu():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    values = torch.arange(6, dtype=torch.float32, device="cuda").reshape(2, 3) * 2

    tensor = pb_utils.Tensor.from_dlpack("t", values)

    assert not tensor.is_cpu() and tensor._values().tolist() == [[0, 2, 4], [6, 8, 10]]
    assert torch.from_dlpack(tensor).data_ptr() == values.data_ptr()


def test_a_tensor_of_another_device_is_refused():
    class OnDevice:
        def __dlpack_device__(self):
            return 4, 0

        def __dlpack__(self):
            raise AssertionError("not to be asked")

    with pytest.raises(pb_utils.TritonModelException, match=r"copy it to host memory first"):
        pb_utils.Tensor.from_dlpack("t", OnDevice())


def test_strings_have_no_dlpack_form():
    tensor = pb_utils.Tensor("t", np.array([b"x"], object))

    with pytest.raises(
        pb_utils.TritonModelException, match=r"^DLPack does not have support for string tensors\.$"
    ):
        tensor.to_dlpack()
    assert tensor.__dlpack_device__() == (1, 0)
