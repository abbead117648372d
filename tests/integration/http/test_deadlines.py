"""Deadlines over HTTP, with both lanes: 504 when the time has passed, wherever the request is."""

import asyncio
import json

import pytest

SOON = {"grpc-timeout": "50m"}
LONG = {"grpc-timeout": "1H"}
PATIENCE_S = 20


def generated(*values):
    return {"x": list(values)}


async def until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), PATIENCE_S)


class TestThePathsOfInference:
    @pytest.mark.parametrize("path", ["infer", "generate", "generate_stream"])
    async def test_an_execution_past_its_deadline_ends_for_its_client_and_is_cancelled(
        self, site, document, path
    ):
        body = document(1) if path == "infer" else generated(1)

        reply = await site.ask("POST", f"/v2/models/gated/{path}", body, SOON)

        assert reply.status == 504
        assert b'{"error":"Deadline Exceeded"}' in reply.body or path == "generate_stream"
        assert [request.cancelled for request in site.backend.requests] == [True]

    async def test_so_does_a_classification(self, site, document):
        wanted = [{"name": "y", "parameters": {"classification": 1}}]

        reply = await site.infer("gated", document(1, 2, outputs=wanted), SOON)

        assert (reply.status, reply.json) == (504, {"error": "Deadline Exceeded"})

    @pytest.mark.parametrize("path", ["infer", "generate"])
    async def test_a_request_leaves_the_queue(self, site, document, path):
        first = asyncio.ensure_future(site.infer("gated", document(1)))
        await asyncio.wait_for(site.backend.running.wait(), PATIENCE_S)
        body = document(2) if path == "infer" else generated(2)

        late = await site.ask("POST", f"/v2/models/gated/{path}", body, SOON)
        site.backend.gate.set()

        assert late.status == 504
        assert (await first).status == 200
        assert len(site.backend.requests) == 1  # it never met the model

    @pytest.mark.parametrize("path", ["infer", "generate"])
    async def test_a_request_in_time_gets_its_response(self, site, document, path):
        body = document(1) if path == "infer" else generated(1)

        with_deadline = await site.ask("POST", f"/v2/models/echo/{path}", body, LONG)
        without = await site.ask("POST", f"/v2/models/echo/{path}", body)

        assert with_deadline.status == 200
        assert with_deadline.body == without.body

    @pytest.mark.parametrize("path", ["infer", "generate", "generate_stream"])
    async def test_a_request_past_its_deadline_calls_no_model(self, site, document, path):
        body = document(1) if path == "infer" else generated(1)

        reply = await site.ask("POST", f"/v2/models/echo/{path}", body, {"Grpc-Timeout": "0S"})

        assert reply.status == 504
        assert site.backend.requests == []

    @pytest.mark.parametrize("path", ["infer", "generate", "generate_stream"])
    @pytest.mark.parametrize("text", ["", "5", "soon", "123456789m"])
    async def test_an_invalid_timeout_is_refused(self, site, document, path, text):
        body = document(1) if path == "infer" else generated(1)

        reply = await site.ask("POST", f"/v2/models/echo/{path}", body, {"grpc-timeout": text})

        assert reply.status == 400
        assert f"header grpc-timeout is '{text}', expected" in json.loads(reply.body)["error"]
        assert site.backend.requests == []

    async def test_the_connection_continues_without_the_deadline(self, site, document):
        connection = await site.connect()

        late = await connection.ask("POST", "/v2/models/gated/infer", document(1), SOON)
        site.backend.gate.set()
        after = await connection.ask("POST", "/v2/models/gated/infer", document(2))

        assert (late.status, after.status) == (504, 200)
        assert after.json["outputs"][0]["data"] == [2]


@pytest.mark.parametrize("path", ["infer", "generate"])
async def test_a_client_that_goes_takes_its_request_out_of_the_queue(site, document, message, path):
    first = asyncio.ensure_future(site.infer("gated", document(1)))
    await asyncio.wait_for(site.backend.running.wait(), PATIENCE_S)
    chain = next(each for each in site.server.models.versions() if each.name == "gated").chain
    connection = await site.connect()
    body = document(2) if path == "infer" else generated(2)
    connection.send(message("POST", f"/v2/models/gated/{path}", body))
    await until(lambda: chain.pending == 1)

    connection.cut()

    await until(lambda: chain.pending == 0)
    site.backend.gate.set()
    assert (await first).status == 200
    assert len(site.backend.requests) == 1


async def test_other_paths_have_no_deadline(site):
    reply = await site.ask("GET", "/v2/health/ready", None, {"grpc-timeout": "soon"})

    assert reply.status == 200
