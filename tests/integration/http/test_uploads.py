"""Forms with files, and content types of JSON tensors, through a server on both paths."""

import base64
import gzip
import json

import pytest

BOUNDARY = "xYzZY"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def form(**values):
    """A form; a value of bytes is a file."""
    lines = []
    for name, value in values.items():
        is_file = isinstance(value, bytes)
        lines.append(b"--" + BOUNDARY.encode())
        file = b'; filename="f.bin"' if is_file else b""
        lines.append(b'Content-Disposition: form-data; name="%b"%b' % (name.encode(), file))
        lines += [b"", value if is_file else value.encode()]
    return b"\r\n".join([*lines, b"--" + BOUNDARY.encode() + b"--", b""])


async def test_a_form_is_a_request_for_inference(site):
    reply = await site.infer("echo", form(x="[1.5, 2]", id="7"), FORM)

    assert reply.status == 200, reply.body
    assert reply.json["id"] == "7"
    assert reply.json["outputs"] == [
        {"name": "y", "datatype": "FP32", "shape": [2], "data": [1.5, 2.0]}
    ]


async def test_a_file_reaches_a_model_unchanged(site):
    data = bytes(range(256)) + b"\r\n--" + BOUNDARY.encode()[:3]
    reply = await site.infer("words", form(x=data), FORM)

    assert reply.status == 200, reply.body
    (request,) = site.backend.requests
    assert request.inputs["x"].array.tolist() == [data]


async def test_generate_and_its_stream_take_forms(site):
    reply = await site.ask("POST", "/v2/models/echo/generate", form(x="[1, 2]"), FORM)
    assert (reply.status, reply.json["y"]) == (200, [1.0, 2.0])

    connection = await site.connect()
    connection.send(
        b"POST /v2/models/stream/generate_stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        + f"Content-Type: {FORM['Content-Type']}\r\n".encode()
    )
    body = form(x="3")
    connection.send(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    assert b'data: {"model_name":"stream","model_version":"1","y":3.0}' in await connection.rest()


async def test_json_follows_a_form_on_the_same_connection(site, document):
    connection = await site.connect()
    for _ in range(3):
        reply = await connection.ask("POST", "/v2/models/echo/infer", form(x="[1]"), FORM)
        assert reply.json["outputs"][0]["data"] == [1.0]
        reply = await connection.ask("POST", "/v2/models/echo/infer", document(2))
        assert reply.json["outputs"][0]["data"] == [2.0]


async def test_a_form_may_be_compressed_for_infer(site):
    headers = {**FORM, "Content-Encoding": "gzip"}

    reply = await site.infer("echo", gzip.compress(form(x="[1]")), headers)
    assert reply.json["outputs"][0]["data"] == [1.0]


@pytest.mark.parametrize("lane", ["auto"])
async def test_a_large_file_is_read_on_another_thread(site):
    data = bytes(3_000_000)
    reply = await site.infer("words", form(x=data), FORM)

    assert reply.status == 200
    assert site.backend.requests[0].inputs["x"].array.tolist() == [data]
    assert site.server.account.held == 0


async def test_a_form_that_is_too_large_is_refused(open_with):
    async with open_with(http_max_input_size=10_000) as site:
        reply = await site.infer("words", form(x=bytes(10_001)), FORM)
        assert (reply.status, "exceeds the maximum" in reply.json["error"]) == (400, True)
        # The limit of binary tensors is higher, but a form has none.
        headers = {**FORM, "Inference-Header-Content-Length": "7"}
        reply = await site.infer("words", form(x=bytes(10_001)), headers)
        assert (reply.status, "exceeds the maximum" in reply.json["error"]) == (400, True)


async def test_the_tensors_of_a_form_count_in_the_memory_of_requests(open_with):
    async with open_with(request_memory_byte_size=3_000_000) as site:
        # The body alone fits the half that one connection may have; its tensors do not fit too.
        reply = await site.infer("words", form(x=bytes(1_400_000)), FORM)
        assert reply.status == 503, reply.body
        assert (await site.infer("words", form(x=bytes(100_000)), FORM)).status == 200


async def test_a_malformed_form_is_400(site):
    for body in (b"", b"{}", form(x="[1]")[:-9], b"--" + BOUNDARY.encode()):
        reply = await site.infer("echo", body, FORM)
        assert reply.status == 400
        assert reply.json["error"].startswith("the body is not a form of multipart/form-data: ")


async def test_content_types_are_read_and_written_on_both_paths(site):
    text = base64.b64encode(b"\x00\xff").decode()
    typed = {"content_type": "base64"}
    body = {
        "inputs": [
            {"name": "x", "datatype": "BYTES", "shape": [1], "data": [text], "parameters": typed}
        ],
        "outputs": [{"name": "y", "parameters": typed}],
    }
    connection = await site.connect()
    for _ in range(4):  # the fast path keeps requests and responses
        reply = await connection.ask("POST", "/v2/models/words/infer", body)
        assert reply.status == 200, reply.body
        assert reply.json["outputs"] == [
            {"name": "y", "datatype": "BYTES", "shape": [1], "parameters": typed, "data": [text]}
        ]
    assert site.backend.requests[0].inputs["x"].array.tolist() == [b"\x00\xff"]


async def test_half_floats_in_base64_need_no_binary_data(site):
    text = base64.b64encode(b"\x00\x3c\x00\xc0").decode()
    typed = {"content_type": "base64"}
    body = {
        "inputs": [
            {"name": "x", "datatype": "FP16", "shape": [2], "data": text, "parameters": typed}
        ],
        "outputs": [{"name": "y", "parameters": typed}],
    }
    reply = await site.infer("half", body)

    assert reply.status == 200, reply.body
    assert reply.json["outputs"][0]["data"] == [text]


async def test_a_large_output_in_base64_is_written_on_another_thread(site):
    text = base64.b64encode(bytes(400_000)).decode()
    typed = {"content_type": "base64"}
    body = {
        "inputs": [
            {
                "name": "x",
                "datatype": "FP32",
                "shape": [100_000],
                "data": [text],
                "parameters": typed,
            }
        ],
        "outputs": [{"name": "y", "parameters": typed}],
    }
    reply = await site.infer("echo", json.dumps(body).encode())

    assert reply.status == 200, reply.body[:300]
    assert reply.json["outputs"][0]["data"] == [text]


async def test_a_data_frame_reaches_the_only_input(site):
    columns = [
        {"name": name, "datatype": "INT32", "shape": [2, 1], "data": data}
        for name, data in (("a", [1, 2]), ("b", [3, 4]))
    ]
    reply = await site.infer("rows", {"parameters": {"content_type": "pd"}, "inputs": columns})

    assert reply.status == 200, reply.body
    assert reply.json["outputs"][0]["data"] == [1, 3, 2, 4]
