"""Requests with several fields Content-Type."""

import asyncio
import json
import struct

import numpy as np
import pytest

INFER = "/v2/models/echo/infer"


def data_of(reply):
    assert reply.status == 200, reply.body
    return reply.json["outputs"][0]["data"]


def twice_typed(path, body, *types, more=""):
    """Return a request with several fields Content-Type."""
    lines = "".join(f"Content-Type: {each}\r\n" for each in types)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\n{lines}{more}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def test_content_types_that_mean_the_same_may_be_repeated(site):
    """KServe's SDK sends both types with a binary request."""
    values = np.array([1.5, 2.5], "<f4").tobytes()
    text = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}]}'
    types = ("application/json", "application/octet-stream")
    size = f"Inference-Header-Content-Length: {len(text)}\r\n"
    connection = await site.connect()
    for _ in range(3):
        connection.send(twice_typed(INFER, text + values, *types, more=size))
        assert data_of(await connection.reply()) == [1.5, 2.5]


@pytest.mark.parametrize(
    "types",
    [("application/json", "text/plain"), ("application/json", "multipart/form-data; boundary=b")],
)
async def test_content_types_that_differ_are_refused(site, types):
    connection = await site.connect()
    connection.send(twice_typed(INFER, b"{}", *types))
    reply = await connection.reply()
    assert reply.status == 400
    assert reply.json == {"error": "Duplicate 'Content-Type' header found."}


async def test_the_bytes_of_a_body_stay(site):
    """The body comes after the server has asked for it. It is no head, even where it looks like one."""
    word = b"\r\nContent-Type: application/json" * 2 + b"\r\n\r\n"
    data = struct.pack("<I", len(word)) + word
    text = json.dumps({"inputs": [words_of(len(data))]}).encode()
    lines = (
        "POST /v2/models/words/infer HTTP/1.1",
        "Host: x",
        "Expect: 100-continue",
        f"Inference-Header-Content-Length: {len(text)}",
        f"Content-Length: {len(text + data)}",
    )
    connection = await site.connect()
    connection.send("\r\n".join([*lines, "", ""]).encode())
    assert (await connection.reply()).status == 100
    connection.send(text)
    connection.send(data)
    assert data_of(await connection.reply()) == [word.decode()]


@pytest.mark.parametrize("first", [b"", b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"])
async def test_the_bytes_of_a_body_stay_if_the_end_of_the_head_is_cut(site, first):
    """Also of a head whose beginning comes while an earlier request is answered."""
    word = b"\r\nContent-Type: application/json" * 2 + b"\r\n\r\n"
    data = struct.pack("<I", len(word)) + word
    text = json.dumps({"inputs": [words_of(len(data))]}).encode()
    size = f"Inference-Header-Content-Length: {len(text)}\r\n"
    request = twice_typed("/v2/models/words/infer", text + data, "application/json", more=size)
    end = request.index(b"\r\n\r\n") + 3
    connection = await site.connect()
    connection.send(first + request[:end])
    if first:
        assert (await connection.reply()).status == 200
    await asyncio.sleep(0.05)  # so that the rest comes in a read of its own
    connection.send(request[end:])
    assert data_of(await connection.reply()) == [word.decode()]


def words_of(size):
    parameters = {"binary_data_size": size}
    return {"name": "x", "datatype": "BYTES", "shape": [1], "parameters": parameters}
