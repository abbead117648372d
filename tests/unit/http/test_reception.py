"""Buffers of bodies that grow with the received data."""

import random
import sys

import pytest

from frontends.http.native.body_receiver import append


@pytest.mark.parametrize("seed", range(5))
def test_pieces_of_any_size_make_the_body(seed):
    draw = random.Random(seed)
    pieces = [draw.randbytes(draw.choice([0, 1, 100, 65536, 300_000])) for _ in range(50)]
    body = bytearray()

    for piece in pieces:
        append(body, piece, sum(map(len, pieces)))

    assert body == b"".join(pieces)


def test_the_buffer_is_doubled_up_to_the_size_of_the_body():
    body, rooms = bytearray(), set()

    for _ in range(100):
        append(body, bytes(65536), 6_553_600)
        rooms.add(sys.getsizeof(body))

    assert len(rooms) <= 9
    assert sys.getsizeof(body) < 6_553_600 + 200


def test_a_body_beyond_its_announced_size_fits_into_the_buffer():
    body = bytearray()

    append(body, bytes(100_000), 10)
    append(body, b"end", 10)

    assert body == bytes(100_000) + b"end"
