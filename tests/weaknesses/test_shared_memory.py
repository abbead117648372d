"""Memory that clients share with the server: limits, lifetimes, and forbidden memory."""

import json
import mmap
import os
from contextlib import contextmanager
from pathlib import Path

import grpc
import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb

PAGE = mmap.PAGESIZE


@contextmanager
def shared_object(size, name="weaknesses-test"):
    """A POSIX shared memory object of a client: its key, and a view of it."""
    path = Path("/dev/shm") / f"{name}-{os.getpid()}"
    path.write_bytes(bytes(size))
    try:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), size) as view:
            yield f"/{path.name}", view
    finally:
        path.unlink(missing_ok=True)


def register(server, key, size=PAGE, offset=0, name="r"):
    return server.ask(
        "POST",
        f"/v2/systemsharedmemory/region/{name}/register",
        {"key": key, "offset": offset, "byte_size": size},
    )


@pytest.fixture
def region(server):
    """One page, registered as `r`."""
    with shared_object(PAGE) as (key, view):
        assert register(server, key).status == 200
        yield view
        server.ask("POST", "/v2/systemsharedmemory/unregister", {})


def placed(region="r", offset=0, size=8):
    return {
        "shared_memory_region": region,
        "shared_memory_offset": offset,
        "shared_memory_byte_size": size,
    }


BEYOND = [
    (0, PAGE + 1),
    (PAGE, 8),
    (PAGE - 4, 8),
    (2**63 - 4, 8),
    (8, 2**63 - 4),
    (2**64 - 8, 16),
    (0, 2**64),
]


@pytest.mark.parametrize(("offset", "size"), BEYOND)
def test_a_tensor_lies_within_its_region(server, region, offset, size):
    """CVE-2024-0088, CVE-2026-24173: an offset and a size whose sum exceeded the region, or overflowed."""
    tensor = {
        "name": "x",
        "datatype": "FP32",
        "shape": [2],
        "parameters": placed("r", offset, size),
    }
    document = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
    out = [{"name": "y", "parameters": placed("r", offset, size)}]

    assert server.infer({"inputs": [tensor]}).status == 400
    assert server.infer({**document, "outputs": out}).status == 400


@pytest.mark.parametrize(("offset", "size"), [*BEYOND, (-1, 8), (0, -1), (0, 0)])
def test_a_region_lies_within_its_object(server, offset, size):
    with shared_object(PAGE) as (key, _):
        assert register(server, key, size, offset).status in (400, 500)
        assert json.loads(server.ask("GET", "/v2/systemsharedmemory/status").body) == []


def test_an_output_is_not_written_beyond_its_place(server, region):
    """CVE-2025-23328: out of bounds write."""
    document = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [4], "data": [1, 2, 3, 4]}]}

    answer = server.infer({**document, "outputs": [{"name": "y", "parameters": placed(size=8)}]})

    assert 400 <= answer.status <= 500
    assert region[8:16] == bytes(8)


def test_memory_that_is_unregistered_stays_while_a_request_uses_it(serve):
    """CVE-2024-0116: use after free."""
    served = serve(allow_client_shm=True)
    with shared_object(PAGE) as (key, view):
        view[:8] = np.array([1, 2], np.float32).tobytes()
        assert register(served, key).status == 200
        wanted = pb.ModelInferRequest(model_name="gated")
        tensor = wanted.inputs.add(name="x", datatype="FP32", shape=[2])
        tensor.parameters["shared_memory_region"].string_param = "r"
        tensor.parameters["shared_memory_byte_size"].int64_param = 8
        call = served.stub.ModelInfer.future(wanted, timeout=30)
        assert served.backend.running.wait(20)

        assert served.ask("POST", "/v2/systemsharedmemory/unregister", {}).status == 200
        served.backend.gate.set()

        assert np.frombuffer(call.result().raw_output_contents[0], np.float32).tolist() == [1, 2]


@pytest.mark.parametrize("name", ["0", "x", "../x", ""])
def test_memory_of_the_server_itself_cannot_be_registered(server, name):
    """CVE-2025-23319, 23320, 23334: the name of internal memory leaked, and clients registered it."""
    key = f"/triton_python_backend_shm_region_{name}"

    answer = register(server, key)

    assert answer.status == 400
    assert key not in answer.text


def test_texts_of_refusals_have_no_key(server):
    answer = register(server, "/a-key-that-is-a-secret")

    assert answer.status >= 400
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    "key", ["/../etc/passwd", "../../etc/passwd", "/a/b", "", "/", "a" * 5000, "a\0b"]
)
def test_a_key_names_only_shared_memory(server, key):
    assert register(server, key).status >= 400


def test_clients_share_no_memory_unless_the_server_wants_it(serve):
    served = serve()
    request = pb.SystemSharedMemoryRegisterRequest(name="r", key="/x", byte_size=8)

    assert register(served, "/x").status == 501
    assert (
        served.refused("SystemSharedMemoryRegister", request).code()
        is grpc.StatusCode.UNIMPLEMENTED
    )


def test_a_handle_of_a_gpu_is_of_its_size(server):
    """Handles that are none reached the driver."""
    for handle in ("", "AAAA", "A" * 4000, "no base64!"):
        answer = server.ask(
            "POST",
            "/v2/cudasharedmemory/region/g/register",
            {"raw_handle": {"b64": handle}, "device_id": 0, "byte_size": 64},
        )
        assert answer.status == 400
