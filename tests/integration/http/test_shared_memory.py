"""Shared memory through a whole server."""

import os

import numpy as np
import pytest

KEY = f"/core_integration_test_{os.getpid()}"


@pytest.fixture
def memory():
    """An object of 64 bytes with the numbers 0 to 15, as an array that shares it."""
    path = f"/dev/shm{KEY}"
    np.arange(16, dtype=np.float32).tofile(path)
    yield np.memmap(path, np.float32, "r+")
    os.unlink(path)


def mappings():
    """Return the number of the server's mappings of the object, without the one of the test."""
    with open("/proc/self/maps") as maps:
        return sum(KEY in line for line in maps) - 1


def place(offset, byte_size=8):
    return {
        "shared_memory_region": "r",
        "shared_memory_offset": offset,
        "shared_memory_byte_size": byte_size,
    }


REQUEST = {
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "parameters": place(8)}],
    "outputs": [{"name": "y", "parameters": place(40)}],
}
BASE = "/v2/systemsharedmemory"


async def test_a_region_that_is_unregistered_meanwhile_stays_to_the_end(open_with, message, memory):
    async with open_with(allow_client_shm=True) as site:
        body = {"key": KEY, "byte_size": 64}
        assert (await site.ask("POST", f"{BASE}/region/r/register", body)).status == 200
        connection = await site.connect()
        connection.send(message("POST", "/v2/models/gated/infer", REQUEST))
        await site.backend.running.wait()

        assert (await site.ask("POST", f"{BASE}/unregister", b"")).status == 200
        assert (await site.ask("GET", f"{BASE}/status")).json == []
        assert (await site.infer("echo", REQUEST)).status == 404
        assert mappings() == 1
        memory[2] = 99  # the input is the memory itself
        site.backend.gate.set()
        answer = await connection.reply()

        assert answer.json["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [2]}]
        assert memory[10:12].tolist() == [99, 3]
        site.backend.requests.clear()  # the model of this test keeps its requests
        assert mappings() == 0


async def test_without_leave_there_are_no_regions(site):
    for kind in ("system", "cuda"):
        base = f"/v2/{kind}sharedmemory"
        assert (await site.ask("GET", f"{base}/status")).json == []
        for path in (f"{base}/region/r/register", f"{base}/unregister"):
            refused = await site.ask("POST", path, b"")
            assert refused.status == 501
            assert "'--allow-client-shm=true'" in refused.json["error"]
    assert (await site.infer("echo", REQUEST)).status == 404
