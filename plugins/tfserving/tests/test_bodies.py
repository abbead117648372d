"""REST: bodies with a Content-Encoding are unpacked, within the limits of the port."""

import gzip
import json
import zlib

import pytest

import core

from .conftest import Rest, double

PREDICT = "/v1/models/double:predict"
PACK = {"gzip": gzip.compress, "deflate": zlib.compress}


@pytest.fixture
def post(rest):
    return lambda body, encoding: rest.post(PREDICT, body, {"Content-Encoding": encoding})


def body_of(rows):
    return json.dumps({"instances": rows}).encode()


@pytest.mark.parametrize("encoding", sorted(PACK))
def test_a_packed_body_is_answered_as_the_body_itself(post, encoding):
    packed = PACK[encoding](body_of([[1, 2], [3, 4.5]]))

    assert post(packed, encoding) == (200, {"predictions": [[2.0, 4.0], [6.0, 9.0]]})
    assert post(body_of([[1]]), "identity") == (200, {"predictions": [[2.0]]})


def test_classify_takes_a_packed_body(rest):
    body = gzip.compress(json.dumps({"examples": [{"x": [0.25]}]}).encode())

    found = rest.post("/v1/models/scores:classify", body, {"Content-Encoding": "gzip"})

    assert found == (200, {"results": [[["0", 0.25], ["1", 0.75]]]})


def test_a_large_packed_body_is_unpacked(post):
    rows = [[number / 7 for number in range(50_000)]] * 4

    status, answer = post(gzip.compress(body_of(rows)), "gzip")

    assert status == 200
    assert answer["predictions"][3][7] == pytest.approx(2.0)


def test_another_encoding_is_refused_with_those_that_are_taken(post):
    status, answer = post(b"x", "br")

    assert (status, answer["error"]) == (501, "Content-Encoding is 'br'; expected gzip, deflate")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "nothing to be decompressed"),
        (b"no gzip at all", "failed to decompress the gzip request body"),
        (gzip.compress(body_of([[1]]))[:-9], "it ends early"),
        (gzip.compress(b"no JSON"), "JSON Parse error"),
    ],
)
def test_a_damaged_body_is_refused(post, body, text):
    status, answer = post(body, "gzip")

    assert status == 400
    assert text in answer["error"]


def test_a_body_that_grows_without_end_is_refused(post):
    zeros = zlib.compressobj(wbits=31)
    packed = b"".join(zeros.compress(bytes(2**20)) for _ in range(60)) + zeros.flush()

    status, answer = post(packed, "gzip")

    assert status == 503
    assert "the unpacked body of a request" in answer["error"]


def test_the_limit_of_the_port_is_for_the_unpacked_body():
    with core.Server(http_max_input_size=2**20) as server:
        server.bind("double", double, inputs={"x": ("FP32", [2])}, outputs={"y": ("FP32", [2])})
        rest = Rest(server.serve(http_port=0)["http"])
        for spaces, expected in ((2**19, 200), (2**20, 400)):
            packed = gzip.compress(b" " * spaces + json.dumps({"inputs": [1, 2]}).encode())
            status, answer = rest.post(PREDICT, packed, {"Content-Encoding": "gzip"})
            assert status == expected

    assert "exceeds the maximum allowed value of 1048576 bytes" in answer["error"]
