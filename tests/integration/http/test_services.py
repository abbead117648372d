"""The responses of each path, with a real server behind it."""

import asyncio
import base64
import gzip
import json
import struct
import zlib

import numpy as np
import pytest

LENGTH = "Inference-Header-Content-Length"
TWO = np.array([1, 2], "<f4").tobytes()


def error(reply, status):
    assert reply.status == status, reply.body
    assert reply.headers["content-type"] == "application/json"
    assert list(reply.json) == ["error"]
    return reply.json["error"]


async def test_health_has_a_status_and_no_body(site):
    for path in (
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models/echo/ready",
        "/v2/models/echo/versions/1/ready",
    ):
        reply = await site.ask("GET", path)
        assert (reply.status, reply.headers["content-length"]) == (200, "0")


@pytest.mark.parametrize("path", ["absent", "echo/versions/9", "echo/versions/0"])
async def test_a_model_that_is_unknown_is_not_ready(site, path):
    assert error(await site.ask("GET", f"/v2/models/{path}/ready"), 400) == (
        "Model version not ready"
    )


async def test_the_server_is_live_before_it_is_ready(open_with):
    async with open_with(model_control_mode="explicit", load_model=["echo"]) as site:
        await site.server.models.unload("echo")
        assert (await site.ask("GET", "/v2/health/live")).status == 200
        assert (await site.ask("GET", "/v2/models/echo/ready")).status == 400


async def test_an_exiting_server_reports_so(site):
    connection = await site.connect()
    await site.server.stop(1)
    for which in ("live", "ready"):
        assert error(await connection.ask("GET", f"/v2/health/{which}"), 503) == "Server exiting"


async def test_metadata_of_server_and_models(site):
    assert (await site.ask("GET", "/v2")).json == site.server.metadata()
    assert (await site.ask("GET", "/v2/models/rows")).json == {
        "name": "rows",
        "versions": ["1"],
        "platform": "test",
        "inputs": [{"name": "x", "datatype": "INT32", "shape": [-1, 2]}],
        "outputs": [{"name": "y", "datatype": "INT32", "shape": [-1, 2]}],
    }
    assert (await site.ask("GET", "/v2/models/rows/versions/1?a=b")).json["name"] == "rows"
    config = (await site.ask("GET", "/v2/models/rows/config")).json
    assert config == site.server.models.config_json("rows")


async def test_statistics_of_one_and_of_all(site, document):
    await site.infer("echo", document(1))
    every = (await site.ask("GET", "/v2/models/stats")).json["model_stats"]
    (one,) = (await site.ask("GET", "/v2/models/echo/versions/1/stats")).json["model_stats"]
    assert {entry["name"] for entry in every} >= {"echo", "rows"}
    assert one["inference_count"] == 1
    assert "absent" in error(await site.ask("GET", "/v2/models/absent/stats"), 400)


@pytest.mark.parametrize("path", ["absent", "absent/config", "echo/versions/9", "a%20b"])
async def test_an_unknown_model_is_named(site, path):
    assert path.split("/")[0] in error(await site.ask("GET", f"/v2/models/{path}"), 404)


async def test_a_version_of_many_digits_is_no_number(site):
    text = error(await site.ask("GET", f"/v2/models/echo/versions/{'9' * 20}"), 400)
    assert "version should be an integral value > 0" in text


# Inference ----------------------------------------------------------------------------------


async def test_json_in_and_out(site, document):
    reply = await site.infer("echo", document(1, -0.5, id="a"))

    assert reply.headers["content-type"] == "application/json"
    assert reply.body == (
        b'{"id":"a","model_name":"echo","model_version":"1","outputs":'
        b'[{"name":"y","datatype":"FP32","shape":[2],"data":[1.0,-0.5]}]}'
    )


async def test_not_a_number_in_and_out(site):
    body = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[3],"data":[NaN,-Inf,1]}]}'
    reply = await site.infer("echo", body)
    assert reply.body.endswith(b'"data":[NaN,-Infinity,1.0]}]}')


async def test_binary_in_and_out(site):
    head = json.dumps(
        {
            "parameters": {"binary_data_output": True},
            "inputs": [
                {
                    "name": "x",
                    "datatype": "FP32",
                    "shape": [2],
                    "parameters": {"binary_data_size": 8},
                }
            ],
        }
    ).encode()

    reply = await site.infer("echo", head + TWO, {LENGTH: str(len(head))})

    size = int(reply.headers[LENGTH.lower()])
    assert reply.headers["content-type"] == "application/octet-stream"
    assert json.loads(reply.body[:size])["outputs"][0]["parameters"] == {"binary_data_size": 8}
    assert reply.body[size:] == TWO


async def test_a_raw_request_is_bytes_in_and_out(site):
    reply = await site.infer("echo", TWO, {LENGTH: "0", "Content-Type": "application/octet-stream"})
    assert reply.body[int(reply.headers[LENGTH.lower()]) :] == TWO

    words = await site.infer("words", b"hello", {LENGTH: "0"})
    assert words.body.endswith(struct.pack("<I", 5) + b"hello")


async def test_rows_of_a_batch(site):
    entry = {"name": "x", "datatype": "INT32", "shape": [2, 2], "data": [[1, 2], [3, 4]]}
    reply = await site.infer("rows", {"inputs": [entry]})
    assert reply.json["outputs"][0]["data"] == [1, 2, 3, 4]
    assert reply.json["outputs"][0]["shape"] == [2, 2]


async def test_the_model_sees_parameters_and_options(site, document):
    await site.infer(
        "echo",
        document(1, parameters={"timeout": 10**7, "own": "word", "sequence_id": 7}),
    )
    (request,) = site.backend.requests
    assert request.parameters == {"own": "word"}
    assert (request.timeout_us, request.correlation_id) == (10**7, 7)


async def test_classes_of_an_output(site, document):
    outputs = [{"name": "y", "parameters": {"classification": 2}}]
    reply = await site.infer("echo", document(0.5, 2, 1, outputs=outputs))
    assert reply.json["outputs"][0]["data"] == ["2.000000:1", "1.000000:2"]


@pytest.mark.parametrize(
    "model,body,status,text",
    [
        ("absent", b"{", 404, "Request for unknown model: 'absent' is not found"),
        ("stream", b"{", 501, "HTTP end point doesn't support models with decoupled transaction"),
        ("echo", b"{", 400, "failed to parse the request JSON buffer"),
        ("echo", {"inputs": []}, 400, "expected 1 inputs but got 0 inputs for model 'echo'"),
        ("rows", TWO, 400, "failed to parse"),
    ],
)
async def test_an_invalid_inference_is_refused(site, model, body, status, text):
    assert text in error(await site.infer(model, body), status)


async def test_the_error_of_a_model_is_returned(site, document):
    assert "broken by nature" in error(await site.infer("broken", document(1)), 500)


async def test_a_half_precision_output_cannot_be_json(site):
    head = json.dumps(
        {
            "inputs": [
                {
                    "name": "x",
                    "datatype": "FP16",
                    "shape": [1],
                    "parameters": {"binary_data_size": 2},
                }
            ]
        }
    ).encode()
    reply = await site.infer("half", head + b"\0\x3c", {LENGTH: str(len(head))})
    assert "sending FP16 data via JSON is not supported" in error(reply, 400)


# Compression, headers, restrictions ------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 60_000])
@pytest.mark.parametrize(
    "encoding,pack,unpack",
    [("gzip", gzip.compress, gzip.decompress), ("deflate", zlib.compress, zlib.decompress)],
)
async def test_both_directions_may_be_packed(site, document, encoding, pack, unpack, count):
    body = pack(json.dumps(document(*range(count))).encode())

    reply = await site.infer(
        "echo", body, {"Content-Encoding": encoding, "Accept-Encoding": f"br, {encoding}"}
    )

    assert reply.headers["content-encoding"] == encoding
    assert json.loads(unpack(reply.body))["outputs"][0]["data"] == list(range(count))


async def test_the_json_length_of_a_packed_answer_is_that_before_packing(site):
    reply = await site.infer("echo", TWO, {LENGTH: "0", "Accept-Encoding": "gzip"})
    plain = gzip.decompress(reply.body)
    assert plain[int(reply.headers[LENGTH.lower()]) :] == TWO


async def test_an_unknown_encoding_is_refused_with_those_that_are_known(site, document):
    reply = await site.infer("echo", document(1), {"Content-Encoding": "br"})
    assert error(reply, 501) == "Unsupported compression type"
    assert reply.headers["accept-encoding"] == "gzip, deflate"


async def test_only_answers_of_inference_are_packed(site):
    for path in ("/v2", "/v2/models/echo"):
        reply = await site.ask("GET", path, headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in reply.headers


async def test_a_bomb_is_refused(open_with):
    async with open_with(http_max_input_size=100_000) as site:
        reply = await site.infer(
            "echo", gzip.compress(bytes(10_000_000)), {"Content-Encoding": "gzip"}
        )
        assert "maximum allowed value of 100000 bytes" in error(reply, 400)


async def test_headers_become_parameters(open_with, document):
    async with open_with(http_header_forward_pattern="^x-|timeout") as site:
        await site.infer("echo", document(1), {"X-One": "1", "other": "2", "x-two": "3"})
        assert site.backend.requests[0].parameters == {"X-One": "1", "x-two": "3"}
        text = error(
            await site.infer("echo", document(1), {"my-Timeout": "5", "TIMEOUT": "5"}), 400
        )
        assert text == "Header 'TIMEOUT' is reserved for Triton usage and cannot be forwarded."


async def test_headers_become_no_parameters_by_default(site, document):
    await site.infer("echo", document(1), {"X-One": "1"})
    assert site.backend.requests[0].parameters == {}


async def test_restricted_paths_need_their_header(open_with, document):
    restricted = {"inference": ("key", "secret"), "metadata": ("other", "x")}
    async with open_with(http_restricted_api=restricted) as site:
        text = error(await site.infer("echo", document(1)), 403)
        assert text == "This API is restricted, expecting header 'key'"
        assert (await site.infer("echo", document(1), {"Key": "secret"})).status == 200
        assert (await site.ask("GET", "/v2")).status == 403
        assert (await site.ask("GET", "/v2/health/ready")).status == 200


# Repository ---------------------------------------------------------------------------------


async def test_the_index_lists_models(site):
    for path in ("/v2/repository/index", "/v2/repository/any/index"):
        for body in (None, b"", b"{}", {"ready": True}, b"[]"):
            reply = await site.ask("POST", path, body)
            assert {"name": "echo", "version": "1", "state": "READY"} in reply.json
    assert "expected a boolean" in error(
        await site.ask("POST", "/v2/repository/index", {"ready": 1}), 400
    )
    error(await site.ask("POST", "/v2/repository/index", b'{"ready":'), 400)


async def test_models_are_loaded_and_unloaded(open_with, document):
    async with open_with(model_control_mode="explicit") as site:
        assert error(await site.infer("echo", document(1)), 404)

        loaded = await site.ask("POST", "/v2/repository/models/echo/load")
        assert (loaded.status, loaded.body) == (200, b"")
        assert (await site.infer("echo", document(1))).status == 200

        unloaded = await site.ask(
            "POST",
            "/v2/repository/models/echo/unload",
            {"parameters": {"unload_dependents": True}},
        )
        assert (unloaded.status, unloaded.body) == (200, b"")
        assert error(await site.infer("echo", document(1)), 404)


async def test_a_load_may_bring_its_files(open_with, document):
    async with open_with(model_control_mode="explicit") as site:
        parameters = {
            "config": json.dumps(
                {
                    "backend": "test",
                    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [1]}],
                    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [1]}],
                }
            ),
            "file:3/model.txt": base64.b64encode(b"any").decode(),
        }
        reply = await site.ask(
            "POST", "/v2/repository/models/echo/load", {"parameters": parameters}
        )
        assert reply.status == 200, reply.body
        assert (await site.ask("GET", "/v2/models/echo")).json["versions"] == ["3"]


@pytest.mark.parametrize(
    "parameters",
    [
        1,
        [],
        {"own": "x"},
        {"config": 1},
        {"config": "{"},
        {"file:1/a": "no base64!"},
        {"file:1/a": 1},
    ],
)
async def test_a_malformed_load_is_refused(open_with, parameters):
    async with open_with(model_control_mode="explicit") as site:
        reply = await site.ask(
            "POST", "/v2/repository/models/echo/load", {"parameters": parameters}
        )
        error(reply, 400)


async def test_a_malformed_unload_is_refused(open_with):
    async with open_with(model_control_mode="explicit") as site:
        body = {"parameters": {"unload_dependents": "yes"}}
        reply = await site.ask("POST", "/v2/repository/models/echo/unload", body)
        assert "'unload_dependents'" in error(reply, 400)


@pytest.mark.parametrize("action", ["load", "unload"])
async def test_a_repository_cannot_be_named(site, action):
    reply = await site.ask("POST", f"/v2/repository/r/models/echo/{action}")
    assert error(reply, 501) == "'repository_name' specification is not supported"


@pytest.mark.parametrize("action", ["load", "unload"])
async def test_models_are_controlled_only_if_the_mode_allows_it(site, action):
    reply = await site.ask("POST", f"/v2/repository/models/echo/{action}")
    assert "explicit model load / unload is not allowed" in error(reply, 503)


async def test_a_failed_service_answers_500_and_the_connection_continues(site, monkeypatch, caplog):
    def fail():
        raise ZeroDivisionError("by accident")

    connection = await site.connect()
    monkeypatch.setattr(site.server, "metadata", fail)
    text = error(await connection.ask("GET", "/v2"), 500)
    assert text == "unexpected error in the server; its log has the details"
    assert "by accident" in caplog.text
    assert (await connection.ask("GET", "/v2/health/live")).status == 200


async def test_requests_of_many_clients_are_answered_each_with_its_own(site, document):
    replies = await asyncio.gather(
        *(site.infer("echo", document(number, id=str(number))) for number in range(50))
    )
    for number, reply in enumerate(replies):
        assert reply.json["id"] == str(number)
        assert reply.json["outputs"][0]["data"] == [number]
