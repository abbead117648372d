"""Memory of another request: no response, region, batch or state exposes a byte of it.

Reused memory is filled with POISON before, by requests of the same size as those under test.
"""

import json
import mmap
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb

POISON = 0xA5
SIZES = (0, 1, 3, 1000, 40_000)


def poisoned(count):
    return np.frombuffer(bytes([POISON]) * 4 * count, np.float32)


def binary(array):
    """Return body and headers of a request to `echo` whose tensors are binary, in both directions."""
    raw = array.tobytes()
    tensor = {"name": "x", "datatype": "FP32", "shape": [array.size]}
    tensor["parameters"] = {"binary_data_size": len(raw)}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    return head + raw, {"Inference-Header-Content-Length": str(len(head))}


def over_http(server, array, model="echo"):
    body, headers = binary(array)
    answer = server.infer(body, model, headers)
    assert answer.status == 200
    # Without a tensor behind it the head is the whole body.
    head = int(answer.headers.get("Inference-Header-Content-Length", len(answer.body)))
    return answer.body[head:], answer.body[:head]


def over_grpc(server, array):
    request = pb.ModelInferRequest(model_name="echo", raw_input_contents=[array.tobytes()])
    request.inputs.add(name="x", datatype="FP32", shape=[array.size])
    (found,) = server.stub.ModelInfer(request, timeout=30).raw_output_contents
    return found


@pytest.mark.parametrize("size", SIZES)
def test_an_answer_holds_the_bytes_of_its_request_and_no_others(server, size):
    """CVE-2024-0103: an uninitialised resource exposed earlier memory to clients."""
    array = np.arange(size, dtype=np.float32)
    for _ in range(3):
        over_http(server, poisoned(max(SIZES)))
        over_grpc(server, poisoned(max(SIZES)))

    data, head = over_http(server, array)

    assert data == array.tobytes()
    assert bytes([POISON]) not in head
    assert over_grpc(server, array) == array.tobytes()


def test_bytes_of_a_cut_request_are_in_no_other_request(server):
    body, headers = binary(poisoned(20_000))
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{lines}\r\n"
    for _ in range(5):
        server.open(head.encode() + body[:-40_000]).close()

    assert over_http(server, np.arange(20_000, dtype=np.float32))[0].count(POISON) < 1000


def test_strings_with_a_too_large_length_expose_no_memory(server):
    element = struct.pack("<I", 3) + b"abc"
    wrong = struct.pack("<I", 4000) + b"abc"
    request = pb.ModelInferRequest(model_name="words", raw_input_contents=[element])
    request.inputs.add(name="x", datatype="BYTES", shape=[1])
    for _ in range(3):
        over_grpc(server, poisoned(1000))

    assert server.stub.ModelInfer(request, timeout=30).raw_output_contents[0] == element
    request.raw_input_contents[0] = wrong
    server.refused("ModelInfer", request)


@pytest.mark.parametrize("size", [8, 64])
def test_an_output_in_a_region_does_not_exceed_its_place(server, size):
    path = Path(f"/dev/shm/weaknesses-fill-{os.getpid()}")
    path.write_bytes(bytes([0x11]) * mmap.PAGESIZE)
    place = {"shared_memory_region": "fill", "shared_memory_byte_size": size}
    document = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
    try:
        registered = {"key": f"/{path.name}", "offset": 0, "byte_size": mmap.PAGESIZE}
        server.ask("POST", "/v2/systemsharedmemory/region/fill/register", registered)
        over_http(server, poisoned(1000))
        answer = server.infer({**document, "outputs": [{"name": "y", "parameters": place}]})
        found = path.read_bytes()
    finally:
        server.ask("POST", "/v2/systemsharedmemory/region/fill/unregister", {})
        path.unlink()

    assert answer.status == 200
    assert found[:8] == np.array([1, 2], np.float32).tobytes()
    assert set(found[8:]) == {0x11}


def test_a_batch_has_only_the_rows_of_its_requests(server):
    """Rows are gathered into memory that is not cleared before."""
    requests = []
    for i in range(40):
        tensor = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [i, i + 0.5]}
        requests.append(({"inputs": [tensor]}, [i, i + 0.5]))
    for _ in range(3):
        over_http(server, poisoned(1000))

    found = [
        json.loads(server.infer(document, "rows").body)["outputs"][0]["data"]
        for document, _ in requests
    ]

    assert found == [expected for _, expected in requests]
