"""The memory of all HTTP connections has one limit: bodies, tensors and unread responses."""

import contextlib
import json
import socket
import time

import numpy as np
import pytest

MB = 1 << 20
LIMIT = 64 * MB
MANY = 2 * MB  # floats: more bytes than the kernel keeps for a connection
HEAD = b"POST /v2/models/%s/infer HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n"


def until(condition, what):
    """Wait until a condition holds."""
    end = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < end, what
        time.sleep(0.01)
    return found


@pytest.fixture
def small(serve):
    """A server whose connections may hold LIMIT bytes together; after the test it must hold none."""
    found = serve(request_memory_byte_size=LIMIT)
    yield found
    account = found.server.account
    until(lambda: account.held == account.unpaid == 0, f"{account.held} bytes are still counted")


@pytest.fixture
def connect(small):
    """Open connections that read little."""
    with contextlib.ExitStack() as stack:

        def opened(data=b""):
            own = stack.enter_context(socket.socket())
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            own.settimeout(30)
            own.connect(("127.0.0.1", small.http.port))
            own.sendall(data)
            return own

        yield opened


def binary(count, model=b"echo"):
    """A request with binary tensors of `count` floats, and its answer in binary."""
    size = 4 * count
    text = json.dumps(
        {
            "inputs": [
                {
                    "name": "x",
                    "datatype": "FP32",
                    "shape": [count],
                    "parameters": {"binary_data_size": size},
                }
            ],
            "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
        }
    ).encode()
    field = b"Inference-Header-Content-Length: %d\r\n" % len(text)
    return HEAD % (model, field, len(text) + size) + text + np.arange(count, dtype="<f4").tobytes()


def read(own):
    """One answer: its head and its body; what came if the connection ends before."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while b"\r\n\r\n" not in data:
            if not (piece := own.recv(65536)):
                return data, b""
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        size = int(head.lower().split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0])
        while len(body) < size and (piece := own.recv(1 << 20)):
            body += piece
        return head, body
    return data, b""


@pytest.mark.parametrize("chunked", [False, True], ids=["known size", "chunks"])
def test_a_body_beyond_the_memory_limit_is_refused_while_it_arrives(small, connect, chunked):
    field = b"Inference-Header-Content-Length: 100\r\n"
    if chunked:
        head = HEAD.replace(b"Content-Length: %d", b"Transfer-Encoding: chunked") % (b"echo", field)
        piece = b"400000\r\n" + bytes(4 * MB) + b"\r\n"
    else:
        head, piece = HEAD % (b"echo", field, 1 << 30), bytes(4 * MB)
    own = connect(head)
    with contextlib.suppress(ConnectionError):
        for _ in range(LIMIT // 2 // (4 * MB) + 2):
            own.sendall(piece)
    head, body = read(own)

    assert head.startswith(b"HTTP/1.1 503 "), head
    assert b"\r\nRetry-After: 1" in head and b"\r\nConnection: close" in head
    assert "--request-memory-byte-size" in json.loads(body)["error"]
    assert small.server.account.refusals > 0


def test_bodies_that_never_end_leave_memory_for_others(small, connect):
    account = small.server.account
    head = HEAD % (b"echo", b"Inference-Header-Content-Length: 100\r\n", 1 << 30)
    greedy = [connect(head) for _ in range(8)]

    def send(size):
        for own in greedy:
            with contextlib.suppress(ConnectionError):
                own.sendall(bytes(size))

    def others_are_answered():
        assert account.held <= LIMIT
        head, body = read(connect(binary(25_000)))  # 100 KB, and as much again for the answer
        assert head.startswith(b"HTTP/1.1 200 "), (head, body)

    send(6 * MB)  # each of eight may hold a ninth of the limit: 7 MB
    until(lambda: account.held > LIMIT // 2, "the bodies are not counted")
    others_are_answered()

    send(8 * MB)
    until(lambda: account.refusals > 0, "no body is refused")
    others_are_answered()


def test_unread_responses_are_limited(small, connect, resident):
    before = resident()
    greedy = [connect(binary(MANY)) for _ in range(30)]
    until(lambda: small.server.account.refusals >= 5, "no answer is refused")

    assert small.server.account.held <= LIMIT
    assert resident() - before < 3 * LIMIT + 64 * MB
    head, body = read(connect(binary(25_000)))
    assert head.startswith(b"HTTP/1.1 200 "), head
    refused = 0
    for own in greedy:
        head, body = read(own)
        if head.startswith(b"HTTP/1.1 200 "):
            # Complete, or cut because the limit allowed no more.
            assert len(body) <= int(head.split(b"\r\nContent-Length: ")[1].split(b"\r\n")[0])
        else:
            assert head == b"" or head.startswith(b"HTTP/1.1 503 "), head
            refused += 1
    assert refused


@pytest.mark.parametrize("path", ["generate", "generate_stream"])
def test_a_text_beyond_the_memory_limit_is_refused(small, connect, path):
    body = b'{"x":[' + b"1e9," * (LIMIT // 12) + b"1]}"
    head = b"POST /v2/models/echo/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"

    answer, text = read(connect(head % (path.encode(), len(body)) + body))

    assert answer.startswith(b"HTTP/1.1 503")
    assert b"the answer" in text and b"--request-memory-byte-size" in text


def test_a_slow_reader_gets_a_large_response_completely(small, connect):
    own = connect(binary(MANY))
    until(lambda: small.server.account.held > MB, "the answer is not counted")

    head, body = read(own)

    size = int(head.split(b"Inference-Header-Content-Length: ")[1].split(b"\r\n")[0])
    assert (np.frombuffer(body[size:], "<f4") == np.arange(MANY)).all()


def test_a_large_response_and_later_ones_come_in_order(small, connect):
    small_ones = [binary(count) for count in (1, 2, 3)]
    get = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    own = connect(b"".join([binary(MANY), *small_ones, get, small_ones[0]]))

    sizes = []
    with own.makefile("rb") as stream:
        for _ in range(6):
            assert stream.readline().startswith(b"HTTP/1.1 200 ")
            fields = dict(line.lower().split(b": ", 1) for line in iter(stream.readline, b"\r\n"))
            size = int(fields[b"content-length"])
            assert len(stream.read(size)) == size
            text = fields.get(b"inference-header-content-length")
            sizes.append(None if text is None else (size - int(text)) // 4)

    assert sizes == [MANY, 1, 2, 3, None, 1]


def test_tensors_made_of_json_count_while_the_request_waits(small, connect):
    count = 200_000
    text = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[%d],"data":[%b0]}]}'
    body = text % (count, b"0," * (count - 1))
    own = connect(HEAD % (b"gated", b"", len(body)) + body)
    small.backend.running.wait(20)

    # The body and four bytes for each element, less the uncounted bytes.
    assert small.server.account.held >= len(body) + 4 * count - 2 * 65536
    small.backend.gate.set()
    head, body = read(own)
    assert head.startswith(b"HTTP/1.1 200 "), head


def test_a_disconnected_client_releases_all_its_memory(small, connect):
    own = connect(binary(MANY))
    other = connect(binary(MANY)[: 6 * MB])
    until(lambda: small.server.account.held > 2 * MB, "nothing is counted")
    own.close()
    other.close()

    until(lambda: small.server.account.held == 0, "what clients left behind is counted")
