"""Compressed HTTP requests and responses."""

import gzip
import json
import zlib

import numpy as np
import pytest
from conformance.protocol import binary_tensor, data_of, http_input, http_output, refused, tensor

BODY = json.dumps({"inputs": [tensor("INPUT0", list(range(200)))]}).encode()
EXPECTED = [2 * number for number in range(200)]
PACK = {"gzip": gzip.compress, "deflate": zlib.compress}
UNPACK = {"gzip": gzip.decompress, "deflate": zlib.decompress}


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_request_is_understood(basic, algorithm):
    response = basic.infer("plain", PACK[algorithm](BODY), headers={"Content-Encoding": algorithm})
    assert data_of(response) == EXPECTED


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_response_is_compressed_on_request(basic, algorithm):
    response = basic.infer("plain", BODY, headers={"Accept-Encoding": algorithm})
    assert response.headers["Content-Encoding"] == algorithm
    assert json.loads(UNPACK[algorithm](response.body))["outputs"][0]["data"] == EXPECTED
    assert int(response.headers["Content-Length"]) == len(response.body)


def test_one_of_the_accepted_encodings_is_taken(basic):
    response = basic.infer("plain", BODY, headers={"Accept-Encoding": "br, gzip, deflate"})
    assert response.headers["Content-Encoding"] in ("gzip", "deflate")
    algorithm = response.headers["Content-Encoding"]
    assert json.loads(UNPACK[algorithm](response.body))["outputs"][0]["data"] == EXPECTED


@pytest.mark.parametrize("accepted", ["identity", "br", "nothing"])
def test_unknown_accepted_encoding_gives_a_plain_response(basic, accepted):
    response = basic.infer("plain", BODY, headers={"Accept-Encoding": accepted})
    assert "Content-Encoding" not in response.headers
    assert data_of(response) == EXPECTED


def test_identity_is_an_encoding(basic):
    assert data_of(basic.infer("plain", BODY, headers={"Content-Encoding": "identity"})) == EXPECTED


@pytest.mark.parametrize("algorithm", ["br", "zstd", "nothing"])
def test_unknown_encoding_of_a_request_is_refused(basic, algorithm):
    refused(basic.infer("plain", BODY, headers={"Content-Encoding": algorithm}))


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_client_compresses_both_ways(http, algorithm):
    sample = np.arange(1000, dtype=np.float32)
    result = http.infer(
        "plain",
        [http_input("INPUT0", sample)],
        outputs=[http_output("OUTPUT0", binary_data=True)],
        request_compression_algorithm=algorithm,
        response_compression_algorithm=algorithm,
    )
    assert np.array_equal(result.as_numpy("OUTPUT0"), sample * 2)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_header_length_is_of_the_body_before_compression(basic, algorithm):
    head = json.dumps({"inputs": [binary_tensor("INPUT0", 8, [2])]}).encode()
    body = PACK[algorithm](head + np.array([1, 2], "<f4").tobytes())
    response = basic.infer(
        "plain",
        body,
        headers={"Content-Encoding": algorithm, "Inference-Header-Content-Length": str(len(head))},
    )
    assert data_of(response) == [2, 4]


def test_truncated_compressed_body_does_not_harm_the_server(basic):
    basic.infer("plain", gzip.compress(BODY)[:40], headers={"Content-Encoding": "gzip"})
    basic.infer("plain", b"no gzip at all", headers={"Content-Encoding": "gzip"})
    assert data_of(basic.infer("plain", BODY)) == EXPECTED


def test_error_may_be_answered_to_a_compressed_request(basic):
    refused(
        basic.infer("plain", gzip.compress(b'{"inputs":[]}'), headers={"Content-Encoding": "gzip"}),
        400,
    )


def test_large_compressed_tensor_round_trips(http):
    sample = np.zeros(500_000, np.float32)
    result = http.infer(
        "plain",
        [http_input("INPUT0", sample)],
        outputs=[http_output("OUTPUT0", binary_data=True)],
        request_compression_algorithm="gzip",
        response_compression_algorithm="gzip",
    )
    assert np.array_equal(result.as_numpy("OUTPUT0"), sample)
