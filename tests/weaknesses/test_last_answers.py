"""The last response of a stopping server announces that the connection closes after it."""

import json
import threading
import time

import pytest

TEXT = json.dumps(
    {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}
).encode()
HEAD = b"POST /v2/models/gated/%s HTTP/1.%d\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n"


def asked(version=1, field=b"", service=b"infer", text=TEXT):
    return HEAD % (service, version, field, len(text)) + text


def answers(served, data):
    """Return the responses to requests that run while the server stops."""
    with served.open(data) as own:
        assert served.backend.running.wait(20)
        ending = threading.Thread(target=served.run, args=[served.http.stop(10)])
        ending.start()
        end = time.monotonic() + 20
        while served.http._listeners:  # then its connections know about the stop
            assert time.monotonic() < end
            time.sleep(0.01)
        served.backend.gate.set()
        found = b""
        while piece := own.recv(65536):
            found += piece
        ending.join()
    return [b"HTTP/1." + part for part in found.split(b"HTTP/1.")[1:]]


def test_the_response_has_connection_close(serve):
    (found,) = answers(serve(), asked())

    assert found.startswith(b"HTTP/1.1 200 ") and found.endswith(b"}")
    assert found.count(b"\r\nConnection: close\r\n") == 1


def test_so_does_one_that_aiohttp_gives(serve):
    (found,) = answers(serve(), asked(service=b"generate", text=b'{"x":[1.0]}'))

    assert found.startswith(b"HTTP/1.1 200 ") and b"\r\nConnection: close\r\n" in found


@pytest.mark.parametrize("field", [b"", b"Connection: keep-alive\r\n"])
def test_a_response_to_http_1_0_has_no_keep_alive(serve, field):
    (found,) = answers(serve(), asked(0, field))

    assert b" 200 " in found and b"keep-alive" not in found.lower()


def test_only_the_last_of_several_has_connection_close(serve, lanes):
    if lanes != "fast":
        pytest.skip("aiohttp answers one request at a time, and no more when the server ends")
    found = answers(serve(), asked() * 3)

    assert [b"\r\nConnection: close" in each for each in found] == [False, False, True]
    assert all(each.startswith(b"HTTP/1.1 200 ") for each in found)


def test_a_response_of_a_running_server_has_no_connection_header(serve, document):
    assert serve().infer(document(1.0)).headers["Connection"] is None
