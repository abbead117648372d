"""Tensors to PyTorch and back, by DLPack, in host memory."""

import gc

import numpy as np
import pytest
import triton_python_backend_utils as pb_utils

from core import dtypes
from core.tensor import Tensor

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

NUMBERS = {
    torch.bool: 1,
    torch.uint8: 2,
    torch.int8: 6,
    torch.int16: 7,
    torch.int32: 8,
    torch.int64: 9,
    torch.float16: 10,
    torch.float32: 11,
    torch.float64: 12,
    torch.bfloat16: 14,
}


@pytest.fixture(params=NUMBERS, ids=str)
def values(request):
    return (torch.arange(6) % 5).to(request.param).reshape(2, 3)


def test_a_tensor_of_pytorch_is_taken_as_it_lies(values):
    tensor = pb_utils.Tensor.from_dlpack("t", values)

    assert (tensor.name(), tensor.shape()) == ("t", [2, 3])
    assert tensor.triton_dtype() == NUMBERS[values.dtype]
    assert tensor.is_cpu() and tensor.__dlpack_device__() == (1, 0)
    again = torch.from_dlpack(tensor)
    assert again.dtype == values.dtype and torch.equal(again, values)
    assert again.data_ptr() == values.data_ptr()


@pytest.mark.parametrize("way", ["object", "capsule"])
def test_pytorch_takes_a_tensor_as_it_lies(values, way):
    tensor = pb_utils.Tensor.from_dlpack("t", values)
    lent = {"object": lambda: tensor, "capsule": tensor.to_dlpack}[way]()

    found = torch.from_dlpack(lent)

    assert found.dtype == values.dtype and torch.equal(found, values)
    assert found.data_ptr() == values.data_ptr()


def test_memory_lives_as_long_as_either_side_uses_it():
    tensor = pb_utils.Tensor.from_dlpack("t", torch.full((1000,), 7))
    found = torch.from_dlpack(tensor)
    del tensor
    gc.collect()

    assert found.sum() == 7000

    array = pb_utils.Tensor.from_dlpack("t", found).as_numpy()
    del found
    gc.collect()
    assert array.sum() == 7000


def test_an_array_of_a_request_may_be_written_through_pytorch():
    tensor = pb_utils.Tensor("t", np.zeros(3, np.float32))

    torch.from_dlpack(tensor).add_(1)

    assert tensor.as_numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_scalars_and_empty_tensors_keep_their_shape(shape):
    tensor = pb_utils.Tensor.from_dlpack("t", torch.zeros(shape))

    assert tensor.shape() == list(shape)
    assert torch.from_dlpack(tensor).shape == shape


def test_a_tensor_that_is_not_contiguous_is_refused_until_it_is():
    turned = torch.arange(6).reshape(2, 3).T

    with pytest.raises(pb_utils.TritonModelException, match=r"stored in C-Order are supported\.$"):
        pb_utils.Tensor.from_dlpack("t", turned)
    tensor = pb_utils.Tensor.from_dlpack("t", turned.contiguous())
    assert tensor.as_numpy().tolist() == turned.tolist()


def test_a_tensor_that_wants_gradients_must_be_detached():
    weights = torch.ones(2, requires_grad=True)

    with pytest.raises(Exception, match="detach"):
        pb_utils.Tensor.from_dlpack("t", weights)
    assert pb_utils.Tensor.from_dlpack("t", weights.detach()).shape() == [2]


def test_a_type_that_the_protocol_lacks_is_refused():
    with pytest.raises(pb_utils.TritonModelException):
        pb_utils.Tensor.from_dlpack("t", torch.zeros(2, dtype=torch.complex64))


async def test_a_model_computes_in_bf16_with_pytorch(serve):
    source = """
    def execute(self, requests):
        import torch
        torch.set_num_threads(1)
        found = []
        for request in requests:
            x = torch.from_dlpack(request.inputs()[0])
            assert x.dtype == torch.bfloat16
            found.append(pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("y", x * 2)]))
        return found
"""
    model = await serve(source, datatype="BF16", mode="thread")
    halves = torch.tensor([1.5, -2.0, 3.25], dtype=torch.bfloat16)
    raw = halves.view(torch.int16).numpy().tobytes()

    answer = await model.ask({"x": Tensor("x", dtypes.BY_NAME["BF16"], (3,), raw)})

    doubled = torch.frombuffer(bytearray(answer.output("y").raw), dtype=torch.bfloat16)
    assert doubled.tolist() == [3.0, -4.0, 6.5]
