"""The end of a body in chunks, however it is cut into pieces, and what the body says."""

import json

import pytest
from core_router.http.chunks import BadChunk, ChunkScanner, without_chunks
from core_router.http.sequence_parameters import model_in, names_sequence, sequence_of
from routing.requests import ask, inputs, outputs

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
    ],
)
def test_other_bytes_are_refused(data):
    with pytest.raises(BadChunk):
        ChunkScanner().feed(data, 0)


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
