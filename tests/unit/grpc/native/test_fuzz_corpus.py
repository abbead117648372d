"""The inputs of the fuzz target tests/fuzz/grpc_http2.cpp, through the connection that Python sees."""

from pathlib import Path

import pytest

from frontends.grpc.method import StreamMethod, UnaryMethod

CORPUS = Path(__file__).parents[3] / "fuzz/corpus/grpc_http2"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
async def test_no_input_of_the_corpus_is_harmful(path, stranger, port, service):
    methods = (
        UnaryMethod("/f.F/Unary", "", service.task),
        StreamMethod("/f.F/Stream", "", service.chat),
    )
    peer = stranger(to=port(*methods))
    options, step, data = path.read_bytes()[0], path.read_bytes()[1], path.read_bytes()[2:]
    if options & 1:
        peer.feed(PREFACE)

    for at in range(0, len(data), step or len(data)):
        peer.feed(data[at : at + (step or len(data))])

    peer.connection.connection_lost(None)
    assert all(call.cancelled for call in service.calls) or not service.calls


def test_there_is_a_corpus():
    assert len(list(CORPUS.iterdir())) > 20
