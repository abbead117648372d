"""Python models in child processes: memory shared with the server has no name and no key.

The chain of CVE-2025-23319, 23320 and 23334 began with an error text that had the name of internal memory.
"""

import json
import os
import re
from pathlib import Path

import pytest
from core_testing import leftovers

from core.system.platform import PORTABLE

MODEL = """
import os, resource
import numpy as np
import triton_python_backend_utils as pb_utils


def host():
    from backend_python.api import host
    return host._process._connection


class TritonPythonModel:
    def execute(self, requests):
        found = []
        for request in requests:
            code = request.inputs()[0].as_numpy()[0].decode()
            y = {"y": None}
            exec(code, {"np": np, "os": os, "resource": resource, "host": host, "y": y})
            found.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([y["y"]], object))]))
        return found
"""
CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_STRING dims: [ -1 ] } ]
"""
# Strings that are useless for a client, and that would help to find other memory.
INTERNAL = re.compile(
    r"memfd|/dev/shm|/proc/|psm_|sem\\.|shm_|arena|offset|0x[0-9a-f]{6}|\\brequests\\b|\\bresponses\\b"
)
TROUBLE = {
    "an answer larger than its arena": "y['y'] = b'x' * (3 << 20)",
    "an arena that cannot grow": (
        "most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]\\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, most))\\n"
        "y['y'] = b'x' * (30 << 20)"
    ),
    "memory that runs out": "y['y'] = bytes(1 << 45)",
    "an end without a word": "os._exit(1)",
    "a signal": "os.kill(os.getpid(), 11)",
    "a channel that is closed": "os.close(host()._sock.fileno())\\nhost()._sock.detach()",
    "nonsense in the channel": "host()._sock.sendall(b'\\\\xff' * 200)",
    "an error": "raise ValueError('wrong')",
}


@pytest.fixture(scope="module")
def served_python(tmp_path_factory, serve_in):
    folder = tmp_path_factory.mktemp("python")
    (folder / "models" / "talk" / "1").mkdir(parents=True)
    (folder / "models" / "talk" / "1" / "model.py").write_text(MODEL)
    served = serve_in(folder, "plain", {"allow_client_shm": True}, {"talk": CONFIG})
    yield served
    served.close()


def ask(served, code):
    """Return the text of the model, or the error."""
    tensor = {"name": "x", "datatype": "BYTES", "shape": [1], "data": [code]}
    answer = served.infer({"inputs": [tensor]}, "talk")
    return answer, json.loads(answer.body)


def answered(served):
    answer, body = ask(served, "y['y'] = b'fine'")
    return answer.status == 200 and body["outputs"][0]["data"] == ["fine"]


@pytest.mark.parametrize("code", TROUBLE.values(), ids=TROUBLE)
def test_no_error_has_an_address_of_internal_memory(served_python, code):
    """CVE-2025-23320 and its neighbours: a request that was too large brought the name into the error."""
    answer, body = ask(served_python, code)

    assert answer.status == 200 or not INTERNAL.search(body["error"]), body
    while not answered(served_python):  # a child that died is replaced
        assert not INTERNAL.search(ask(served_python, "y['y'] = b''")[0].text)


def shared(pid):
    """Return the shared mappings of a process, by name."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {line.split(None, 5)[5] for line in lines if line.split()[1][3] == "s" and "/" in line}


def processes(pid):
    return [pid, *(each for child in leftovers.children(pid) for each in processes(child))]


@pytest.mark.skipif(PORTABLE, reason="looks for the memory without a name that Linux has")
def test_memory_between_server_and_model_has_no_name(served_python):
    """CVE-2025-23318, 23329, 23333: another process that opened it could forge the server's data."""
    assert ask(served_python, "y['y'] = b'x' * (2 << 20)")[0].status == 200

    found = {each: shared(each) for each in processes(os.getpid())}

    assert any("memfd" in name for names in found.values() for name in names)
    for pid, names in found.items():
        # This process is the client too, which has mapped memory with a name in other tests.
        assert pid == os.getpid() or not any(name.startswith("/dev/shm/") for name in names)
        # The name of a memfd is a label in /proc; it cannot be opened by that name.
        assert not any(Path(name).exists() for name in names if "memfd" in name)


def keys():
    """Return all names that could open objects of the server and its models."""
    yield from ("memfd:requests", "/memfd:requests", "memfd:responses (deleted)", "/responses")
    yield from ("triton_python_backend_shm_region_1", "//triton_python_backend_shm_region_1")
    for pid in ("self", *processes(os.getpid())):
        folder = Path(f"/proc/{pid}/fd")
        for file in os.listdir(folder)[:30] if folder.exists() else ():
            yield f"{folder}/{file}"
            yield f"../..{folder}/{file}"
            yield f"/dev/fd/{file}"


def register(served, key):
    body = {"key": key, "offset": 0, "byte_size": 64}
    return served.ask("POST", "/v2/systemsharedmemory/region/stolen/register", body)


def test_internal_memory_cannot_be_registered(served_python):
    assert answered(served_python)
    tried = list(keys())

    for key in tried:
        answer = register(served_python, key)
        assert answer.status >= 400, key
        assert key not in answer.text

    assert len(tried) > 20
    assert json.loads(served_python.ask("GET", "/v2/systemsharedmemory/status").body) == []


@pytest.mark.parametrize("key", ["/sem.{}", "sem.{}", "//sem.{}"])
def test_a_semaphore_is_no_memory_to_register(served_python, key):
    """Named semaphores lie where shared memory does; a client that maps one lets others wait for ever."""
    name = f"weaknesses-{os.getpid()}"
    path = Path(f"/dev/shm/sem.{name}")
    path.write_bytes(bytes(64))
    try:
        answer = register(served_python, key.format(name))
    finally:
        path.unlink()

    assert answer.status == 400
    assert name not in answer.text


@pytest.mark.parametrize("size", [0, 1, 63, 5000])
def test_a_response_has_no_bytes_of_earlier_responses_in_its_memory(served_python, size):
    """CVE-2024-0103: both arenas are used again and again, and are not cleared between requests."""
    for _ in range(3):
        ask(served_python, f"y['y'] = b'secret' * 50_000  # {'secret' * 20_000}")

    answer, body = ask(served_python, f"y['y'] = b'x' * {size}")

    assert answer.status == 200
    assert body["outputs"][0]["data"] == ["x" * size]
