"""Memory of GPUs over HTTP and gRPC, with tritonclient's calls and a device that is played."""

import base64

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

CLIENTS = {"http": tritonclient.http, "grpc": tritonclient.grpc}


@pytest.fixture(params=CLIENTS)
def library(request):
    return CLIENTS[request.param]


@pytest.fixture
def client(library, site):
    kind = "http" if library is tritonclient.http else "grpc"
    with library.InferenceServerClient(site.url(kind)) as found:
        yield found
        found.unregister_cuda_shared_memory()


@pytest.fixture
def memory(site):
    """A handle as clients send it, and sixteen floats behind it."""
    handle, found = site.runtime.share(np.arange(16, dtype=np.float32))
    return base64.b64encode(handle).decode(), found


def listed(client):
    status = client.get_cuda_shared_memory_status()
    if isinstance(status, list):
        return status
    return [
        {"name": each.name, "device_id": each.device_id, "byte_size": each.byte_size}
        for each in status.regions.values()
    ]


def test_regions_are_registered_listed_and_forgotten(client, memory, site):
    client.register_cuda_shared_memory("r", memory[0], 0, 64)

    assert listed(client) == [{"name": "r", "device_id": 0, "byte_size": 64}]
    assert len(site.runtime.opened) == 1
    with pytest.raises(InferenceServerException, match="'r' already in manager"):
        client.register_cuda_shared_memory("r", memory[0], 0, 64)
    client.unregister_cuda_shared_memory("r")
    assert listed(client) == [] and site.runtime.opened == []


def test_inputs_and_outputs_are_there(client, library, memory, site):
    client.register_cuda_shared_memory("r", memory[0], 0, 64)
    x, y = library.InferInput("x", [2], "FP32"), library.InferRequestedOutput("y")
    x.set_shared_memory("r", 8, 8)
    y.set_shared_memory("r", 8, 32)

    client.infer("double", [x], outputs=[y])

    assert memory[1][8:10].tolist() == [4, 6]
    client.unregister_cuda_shared_memory("r")
    assert site.runtime.opened == []


def test_a_wrong_size_and_a_wrong_place_are_refused(client, library, memory):
    client.register_cuda_shared_memory("r", memory[0], 0, 64)
    for size, offset, text in (
        (4, 0, "byte size mismatch for input 'x' for model 'double'. Expected 8, got 4"),
        (8, 64, "Invalid offset for shared memory region: 'r'"),
        (8, 60, "Invalid offset \\+ byte size for shared memory region: 'r'"),
    ):
        x = library.InferInput("x", [2], "FP32")
        x.set_shared_memory("r", size, offset)
        with pytest.raises(InferenceServerException, match=text):
            client.infer("double", [x])


def test_text_is_read_and_written(client, library, site):
    handle, found = site.runtime.share(np.frombuffer(b"\2\0\0\0hi" + bytes(26), np.uint8))
    client.register_cuda_shared_memory("w", base64.b64encode(handle).decode(), 0, 32)
    x, y = library.InferInput("x", [1], "BYTES"), library.InferRequestedOutput("y")
    x.set_shared_memory("w", 6)
    y.set_shared_memory("w", 16, 16)

    client.infer("words", [x], outputs=[y])

    assert found[16:22].tobytes() == b"\2\0\0\0hi"
