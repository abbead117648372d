"""The end of a body in chunks, however it is cut into pieces."""

import pytest
from core_router.http.chunks import BadChunk, ChunkScanner

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
