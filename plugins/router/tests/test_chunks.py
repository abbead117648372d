"""The end of a body in chunks, however it is cut into pieces, and what the body says."""

import json
import random
import sys
import time

import pytest
from core_router.http.body import IncomingBody
from core_router.http.chunks import MOST_CHUNKS, BadChunk, ChunkScanner, without_chunks
from core_router.http.heads import request_head
from core_router.http.sequence_parameters import model_in, names_sequence, sequence_of
from routing.requests import ask, inputs, outputs
from routing.running import compiled_only

BODY = b"4\r\nWiki\r\n6;ext=1\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nTrailer: 1\r\n\r\n"


def end_of(pieces):
    """Return the position of the end in all pieces together, and whether it was found."""
    scanner, total = ChunkScanner(), 0
    for piece in pieces:
        total += scanner.feed(piece, 0)
        if scanner.done:
            break
    return total, scanner.done


@pytest.mark.parametrize("size", range(1, len(BODY) + 1))
def test_the_end_is_found_in_pieces_of_any_size(size):
    data = BODY + b"GET / HTTP/1.1\r\n\r\n"

    assert end_of([data[at : at + size] for at in range(0, len(data), size)]) == (len(BODY), True)


def test_a_body_without_its_last_chunk_is_not_done():
    assert end_of([BODY[:-2]]) == (len(BODY) - 2, False)


@pytest.mark.parametrize(
    "data",
    [
        b"x\r\n",
        b"-1\r\n",
        b"0x4\r\nWiki\r\n",
        b"4\nWiki\r\n",
        b"4\r\nWikip\r\n",
        b"\r\n",
        b"1" * 16 + b"\r\n",
        b"0\r\nTrailer: 1\n\r\n",
        b"1;" + b"x" * 5000,
        b"1;x\0\r\n",
        b"1;x\x7f\r\n",
        b"1;\r\r\n",
        b"1 x\r\n",
        b"1\r\nx\n0",
    ],
)
def test_other_bytes_are_refused(data):
    with pytest.raises(BadChunk):
        ChunkScanner().feed(data, 0)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_chunk_may_have_spaces_and_extensions(size):
    line = b'00000000000000f \t;name="value"\t; other=\xff\r\n'
    data = line + b"\r\n;0123456789ab\r\n0;end\r\n\r\n"

    assert end_of([data[at : at + size] for at in range(0, len(data), size)]) == (len(data), True)
    assert without_chunks(data) == b"\r\n;0123456789ab"


def test_the_chunks_of_a_request_have_a_bound():
    scanner = ChunkScanner(3)
    scanner.feed(b"1\r\nx\r\n1\r\ny\r", 0)
    scanner.feed(b"\n1;z\r", 0)
    scanner.feed(b"\nx\r\n", 0)

    with pytest.raises(BadChunk, match="more than 3 chunks"):
        scanner.feed(b"1\r\n", 0)
    last = ChunkScanner(1)
    last.feed(b"1\r\nx\r\n0\r\n\r\n", 0)
    assert last.done


def test_a_request_of_too_many_chunks_is_refused_and_a_response_passes(router, raw):
    head = b"POST /v2/models/who/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    client = raw(router.port)
    client.send(head + b"1\r\n \r\n" * (MOST_CHUNKS + 1))

    status, fields, body = client.receive()
    assert (status, fields["connection"]) == (400, "close")
    assert b"more than 65536 chunks" in body
    assert end_of([b"1\r\n \r\n" * (MOST_CHUNKS + 1) + b"0\r\n\r\n"])[1]


@compiled_only
@pytest.mark.parametrize("line", [b"1\r\n", b"1;\r\n", b"1 ;a\r\n"])
def test_many_chunks_take_no_time(line):
    body = (line + b"x\r\n") * MOST_CHUNKS + b"0\r\n\r\n"
    began_s = time.thread_time()

    assert ChunkScanner(MOST_CHUNKS).feed(body, 0) == len(body)
    assert len(without_chunks(body)) == MOST_CHUNKS
    assert time.thread_time() - began_s < 0.1


def test_small_pieces_of_a_body_take_no_more_memory_than_their_bytes():
    class Router:
        kept_bytes = 0

        class limits:
            kept_bytes = 1 << 30

    draw, size = random.Random(2), 200_000
    head = request_head(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % size)
    data = draw.randbytes(size)
    body, at = IncomingBody(Router, head, 1 << 20), 0
    while at < size:
        step = draw.choice([1, 1, 1, 2, 3, 5000, 70_000])
        body.take(data[at : at + step], 0)
        at += step
        assert sum(map(sys.getsizeof, body._pieces._parts)) < 1.3 * at + 1000

    assert body.message() == head.passed_on + data
    body.release()
    assert Router.kept_bytes == 0


def in_chunks(body, size):
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join([*(b"%x\r\n%b\r\n" % (len(each), each) for each in pieces), b"0\r\n\r\n"])


def test_the_data_of_chunks():
    assert without_chunks(BODY) == b"Wikipedia in \r\n\r\nchunks."
    assert without_chunks(b'{"a":\r\n4\r\n}') == b'{"a":\r\n4\r\n}'
    assert without_chunks(b"") == b""


@pytest.mark.parametrize("size", [1, 7, 30, 1000])
@pytest.mark.parametrize("tensors", [b"", b"\x00\r\n5\r\n"])
def test_the_sequence_of_a_body_in_chunks(size, tensors):
    text = b'{"inputs":[],"model":"m","parameters":{"sequence_id":7}}'
    head, body = b"head", in_chunks(text + tensors, size)
    json_size = len(text) if tensors else -1

    assert names_sequence(head + body, len(head), json_size)
    assert sequence_of(body, json_size) == (7, False, False)
    assert model_in(in_chunks(text, size)) == "m"
    none = in_chunks(text.replace(b"sequence_id", b"other"), size)
    assert not names_sequence(head + none, len(head), -1)


def test_a_sequence_in_chunks_stays_on_its_server(router, raw):
    path, servers = "/v2/models/who/infer", set()
    head = b"POST %b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" % path.encode()
    body = json.dumps(inputs(1.0, sequence_id=5)).encode()
    client = raw(router.port)
    for _ in range(20):
        client.send(head + in_chunks(body, 60))
        servers.add(json.loads(client.receive()[2])["outputs"][0]["data"][1])

    assert servers == {outputs(ask(router.port, path, json.loads(body)))[1]}
    assert router.metric("core_router_sequences") == 1
