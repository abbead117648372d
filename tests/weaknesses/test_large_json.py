"""JSON that costs more than its size: it does not block the event loop, and its memory has a limit."""

import asyncio
import base64
import gzip
import json
import socket
import threading
import time

import pytest

MB = 2**20
LONGEST_S = (
    0.15  # of CPU that one callback of the event loop may take; without bounds it was seconds
)
FP16 = b'],"inputs":[{"name":"x","datatype":"FP16","shape":[1],"data":[1]}]}'
UNITS = [b"[[]],", b'{"":{}},', b'{"a":[{}]},', b"1.5,", b'"",1.5,', b"[[[[[[[[]]]]]]]],"]


@pytest.fixture
def longest(monkeypatch):
    """The most CPU that a callback of an event loop took, in seconds; set it to 0.0 to begin."""
    found = [0.0]
    run = asyncio.Handle._run

    def timed(handle):
        begin = time.thread_time()
        run(handle)
        found[0] = max(found[0], time.thread_time() - begin)

    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    return found


@pytest.fixture
def peak(resident):
    """Call something; by how many bytes this process, which the server is in, was larger meanwhile."""

    def call(function, *arguments, **named):
        over = threading.Event()
        before = most = resident()

        def watch():
            nonlocal most
            while not over.wait(0.002):
                most = max(most, resident())

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            answer = function(*arguments, **named)
        finally:
            over.set()
            watcher.join()
        return answer, most - before

    return call


def zeros(count, shape=None, datatype="FP32"):
    head = b'{"inputs":[{"name":"x","datatype":"%s","shape":[%d],"data":[' % (
        datatype.encode(),
        count if shape is None else shape,
    )
    return head + b"0," * (count - 1) + b"0]}]}"


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("end", [b"1", b"Inf"])
def test_a_document_of_many_values_is_counted_before_it_is_built(server, longest, peak, unit, end):
    body = b'{"x":[' + unit * (8 * MB // len(unit)) + end + FP16
    longest[0] = 0.0

    answer, grown = peak(server.infer, body)

    assert answer.status == 400
    assert "values and keys; 50000 are the most" in answer.text
    assert longest[0] < LONGEST_S
    assert grown < 3 * len(body) + 64 * MB


@pytest.mark.parametrize("unit", UNITS)
def test_a_small_body_that_unpacks_to_such_a_document_is_refused_too(server, longest, peak, unit):
    packed = gzip.compress(b'{"x":[' + unit * (24 * MB // len(unit)) + b"1" + FP16)
    longest[0] = 0.0

    answer, grown = peak(server.infer, packed, headers={"Content-Encoding": "gzip"})

    assert answer.status in (400, 503)
    assert longest[0] < LONGEST_S
    assert grown < 3 * len(packed) + 64 * MB


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (zeros(2 * MB, shape=2 * MB + 1), "2097152 elements, shape [2097153]"),
        (zeros(2 * MB, datatype="FP16"), "FP16 data via JSON is not supported"),
        (zeros(2 * MB, datatype="BOOL"), "non-boolean as boolean"),
        (zeros(2 * MB)[:-1], "Missing a comma or } after an object member. at"),
        (zeros(2 * MB)[:-4] + b"x]}]}", "Missing a comma or ] after an array element. at"),
        (zeros(2 * MB, datatype="UINT8")[:-4] + b",300]}]}", "Shape does not match"),
    ],
)
def test_a_large_tensor_that_is_wrong_is_refused_without_being_built(server, longest, body, reason):
    longest[0] = 0.0

    answer = server.infer(body)

    assert answer.status == 400 and reason in answer.text
    assert longest[0] < LONGEST_S


@pytest.mark.parametrize("member", ["id", "own"])
def test_text_next_to_tensors_has_a_limit(server, longest, member):
    text = "\u00e4" * (3 * MB)
    more = {"id": text} if member == "id" else {"parameters": {"own": text}}
    body = zeros(1).replace(b"{", json.dumps(more, ensure_ascii=False).encode()[:-1] + b",", 1)
    longest[0] = 0.0

    answer = server.infer(body)

    assert answer.status == 400 and "4194304 bytes of text" in answer.text
    assert longest[0] < LONGEST_S


def test_a_large_tensor_is_read_and_written_off_the_event_loop(server, longest):
    body = zeros(2 * MB)
    longest[0] = 0.0

    answer = server.infer(body)

    assert answer.status == 200
    (output,) = json.loads(answer.body)["outputs"]
    assert output["shape"] == [2 * MB] and set(output["data"]) == {0.0}
    assert longest[0] < LONGEST_S


@pytest.mark.parametrize("gap", [b" ", b"\n\n"])
def test_answers_keep_their_order_when_a_large_request_is_between_small_ones(server, document, gap):
    bodies = [json.dumps(document(1.0, id="a")).encode(), zeros(MB).replace(b"{", b'{"id":"b",', 1)]
    bodies += [json.dumps(document(3.0, id="c")).encode() + gap, bodies[1].replace(b'"b"', b'"d"')]
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.http.port), timeout=60) as own:
        sender = threading.Thread(
            target=own.sendall, args=(b"".join(head % len(body) + body for body in bodies),)
        )
        sender.start()
        found, ids = own.makefile("rb"), []
        for _ in bodies:
            assert found.readline().startswith(b"HTTP/1.1 200")
            size = 0
            while (line := found.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    size = int(line.split(b":")[1])
            ids.append(json.loads(found.read(size))["id"])
        sender.join()

    assert ids == ["a", "b", "c", "d"]


def test_a_client_that_disconnects_during_its_body_disturbs_no_other(server):
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    body = zeros(MB)

    for _ in range(4):
        server.open(head % len(body) + body).close()

    assert server.infer(zeros(10)).status == 200


def test_generate_keeps_large_arrays_as_text(server, longest):
    def generate(data, **more):
        document = b'{"x":[' + data + b"]" + b"".join(b',"%s":1' % key for key in more) + b"}"
        return server.ask("POST", "/v2/models/echo/generate", document)

    longest[0] = 0.0

    right = generate(b"0," * (2 * MB) + b"1")
    wrong = generate(b"[[]]," * (2 * MB) + b"1")

    assert right.status == 200 and json.loads(right.body)["y"][-2:] == [0.0, 1.0]
    assert wrong.status == 400 and "1 elements, shape [2097153]" in wrong.text
    assert longest[0] < LONGEST_S


def test_a_large_parameter_of_generate_is_counted(server, longest):
    longest[0] = 0.0

    nested = server.ask(
        "POST", "/v2/models/echo/generate", b'{"x":[1],"p":{"q":[' + b"[]," * (2 * MB) + b"1]}}"
    )
    listed = server.ask(
        "POST", "/v2/models/echo/generate", b'{"x":[1],"p":[' + b"[]," * (2 * MB) + b"1]}"
    )

    assert nested.status == 400 and "values and keys; 50000 are the most" in nested.text
    assert listed.status == 400 and "parameter 'p' has invalid type" in listed.text
    assert longest[0] < LONGEST_S


CONTROL = [
    "/v2/repository/index",
    "/v2/repository/models/echo/unload",
    "/v2/logging",
    "/v2/trace/setting",
    "/v2/systemsharedmemory/region/r/register",
]


@pytest.mark.parametrize("path", CONTROL)
def test_other_requests_than_inference_have_small_limits(server, longest, path):
    longest[0] = 0.0

    large = server.ask("POST", path, b'{"x":[' + b"1," * MB + b"1]}")
    many = server.ask("POST", path, b'{"x":[' + b"[]," * 20_000 + b"1]}")

    assert large.status == 400 and "exceeds the maximum of 1048576 bytes" in large.text
    assert many.status == 400 and "20004 values and keys; 10000 are the most" in many.text
    assert longest[0] < LONGEST_S


def test_a_load_takes_large_files_and_no_large_documents(server, longest):
    def load(parameters, model="brought"):
        return server.ask("POST", f"/v2/repository/models/{model}/load", {"parameters": parameters})

    config = {"backend": "test", "input": [], "output": []}
    for key, name in (("input", "x"), ("output", "y")):
        config[key] = [{"name": name, "data_type": "TYPE_FP32", "dims": [-1]}]
    file = base64.b64encode(bytes(range(256)) * 4 * 4096).decode()
    longest[0] = 0.0

    loaded = load({"config": json.dumps(config), "file:1/weights": file})
    broken = load({"config": json.dumps(config), "file:1/weights": file[:-3] + "=" + file})
    many = load({"config": '{"x":[' + "[]," * 200_000 + "1]}"}, "echo")
    large = load({"config": " " * (2 * MB) + json.dumps(config)}, "echo")

    assert loaded.status == 200, loaded.text
    assert broken.status == 400 and "must be the file's bytes in base64" in broken.text
    assert many.status == 400 and "100000 are the most of a configuration" in many.text
    assert large.status == 400 and "1048576 are the most of a configuration" in large.text
    assert longest[0] < LONGEST_S
    assert server.ask("POST", "/v2/repository/models/brought/unload").status == 200


@pytest.mark.parametrize("size", [1, 300_000])
def test_a_byte_order_mark_before_json_is_passed_over(server, size):
    """Triton reads over it."""
    mark = b"\xef\xbb\xbf"

    inferred = server.infer(mark + zeros(size))
    generated = server.ask(
        "POST", "/v2/models/echo/generate", mark + b'{"x":[' + b"0," * size + b"1]}"
    )

    assert inferred.status == 200 and generated.status == 200
    assert server.ask("POST", "/v2/repository/index", mark + b'{"ready":true}').status == 200


# Compression -----------------------------------------------------------------------


def test_decompressed_bytes_beyond_the_size_are_accounted(server, longest, peak):
    """Requests of a few KB, whose responses the client does not read."""
    packed = gzip.compress(zeros(16 * MB), 9)
    head = (
        b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"
        b"Content-Length: %d\r\n\r\n" % len(packed)
    )
    longest[0] = 0.0

    def attack():
        clients = [server.open(head + packed) for _ in range(6)]
        return [client.recv(12) for client in clients], clients

    (statuses, clients), grown = peak(attack)

    assert set(statuses) == {b"HTTP/1.1 503"}
    assert longest[0] < LONGEST_S
    assert grown < 100 * MB  # without the account: ten times as many
    for client in clients:
        client.close()


def test_ratios_that_real_data_has_are_not_refused(server):
    text = b",".join(b"%d.%d" % (i % 7, i % 11) for i in range(2 * MB))
    body = zeros(1, shape=2 * MB).replace(b"[0]", b"[" + text + b"]")
    packed = gzip.compress(body)
    assert len(body) / len(packed) > 10

    answers = [server.infer(packed, headers={"Content-Encoding": "gzip"}) for _ in range(3)]

    assert [answer.status for answer in answers] == [200] * 3


def test_a_small_body_is_decompressed_off_the_event_loop_if_it_becomes_large(server, longest):
    packed = gzip.compress(zeros(2 * MB), 9)
    assert len(packed) < 64 * 1024
    longest[0] = 0.0

    answer = server.infer(packed, headers={"Content-Encoding": "gzip"})

    assert answer.status == 200
    assert longest[0] < 0.05
