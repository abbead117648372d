"""The services of generate over a server whose responses a test gives, without sockets."""

import asyncio
import json
from types import SimpleNamespace

import numpy as np
import pytest
from multidict import CIMultiDict

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import CoreError, Kind, internal, invalid, not_found
from core.options import Options
from core.response import InferenceResponse, Reply
from core.tensor import Tensor
from frontends.http.message import HttpRequest
from frontends.http.services.generate import generate, generate_stream


class ScriptedServer:
    """One model `m` with the text `x`; `reply` is that of the last request."""

    def __init__(self):
        self.options = Options.defaults()
        self.tracing = SimpleNamespace(on=False)
        self.reply = None
        self.models = self

    def signature(self, name, version=-1):
        if name != "m":
            raise not_found(f"Request for unknown model: '{name}' is not found")
        return Signature("m", 1, {"x": InputSpec("x", dtypes.BYTES, (1,))}, {}, 0, True)

    def infer(self, request):
        if not request.inputs:
            raise invalid("expected 1 inputs but got 0")
        self.reply = Reply(request)
        return self.reply


def answer(value, dtype=np.int32):
    return InferenceResponse("m", 1, [Tensor.of("y", np.array([value], dtype))])


def call(document=None, model="m", **headers):
    body = json.dumps({"x": "hi"} if document is None else document).encode()
    captures = {"model": model, "version": None}
    return HttpRequest("POST", "/", captures, CIMultiDict(headers), body)


@pytest.fixture
def server():
    return ScriptedServer()


@pytest.fixture
def ask(server):
    """Start a service; return its task when the request has reached the model."""

    async def start(service):
        task = asyncio.ensure_future(service(server, call()))
        await asyncio.sleep(0)
        assert server.reply is not None and not task.done()
        return task

    return start


def event(part):
    assert part.startswith(b"data: ") and part.endswith(b"\n\n")
    return json.loads(part[6:])


@pytest.mark.parametrize("service", [generate, generate_stream])
async def test_a_refusal_is_raised_by_the_call(server, service):
    with pytest.raises(CoreError, match="unknown model"):
        await service(server, call(model="absent"))
    with pytest.raises(CoreError, match="unknown model"):  # before the body is looked at
        await service(server, call(model="absent", **{"Content-Encoding": "gzip"}))
    with pytest.raises(CoreError, match="only 'identity' is supported"):
        await service(server, call(**{"Content-Encoding": "gzip"}))
    with pytest.raises(CoreError, match="expected 1 inputs but got 0"):
        await service(server, call({}))


async def test_generate_gives_the_one_answer(server, ask):
    task = await ask(generate)

    server.reply.send(answer(5), final=False)
    server.reply.send(None)

    found = await task
    assert (found.status, found.headers) == (200, {"Content-Type": "application/json"})
    assert json.loads(found.body) == {"model_name": "m", "model_version": "1", "y": 5}
    assert found.more is None


async def test_generate_without_an_answer_is_an_error_in_the_body(server, ask):
    task = await ask(generate)

    server.reply.send(None)

    found = await task
    assert found.status == 200
    assert "exactly 1 response" in json.loads(found.body)["error"]


async def test_generate_does_not_wait_for_more_than_two_answers(server, ask):
    task = await ask(generate)

    server.reply.send(answer(1), final=False)
    server.reply.send(answer(2), final=False)

    assert "exactly 1 response" in json.loads((await task).body)["error"]
    assert server.reply.request.cancelled


async def test_generate_raises_the_error_of_the_model(server, ask):
    task = await ask(generate)

    server.reply.fail(internal("it broke"))

    with pytest.raises(CoreError, match="it broke"):
        await task
    assert not server.reply.request.cancelled


@pytest.mark.parametrize("service", [generate, generate_stream])
async def test_a_client_that_goes_before_the_first_answer_cancels_the_request(server, ask, service):
    task = await ask(service)

    task.cancel()

    await asyncio.gather(task, return_exceptions=True)
    assert server.reply.request.cancelled


async def test_the_stream_begins_with_the_first_answer_and_ends_with_the_last(server, ask):
    task = await ask(generate_stream)
    server.reply.send(answer(0), final=False)
    found = await task
    rest = aiter(found.more)
    second = asyncio.ensure_future(anext(rest))
    await asyncio.sleep(0)
    assert not second.done()

    server.reply.send(answer(1), final=False)
    server.reply.send(None)

    assert found.status == 200
    assert found.headers == {"Content-Type": "text/event-stream; charset=utf-8"}
    assert event(found.body)["y"] == 0
    assert event(await second)["y"] == 1
    with pytest.raises(StopAsyncIteration):
        await anext(rest)


async def test_a_stream_without_answers_is_empty(server, ask):
    task = await ask(generate_stream)

    server.reply.send(None)

    found = await task
    assert (found.status, found.body, found.more) == (200, b"", None)


@pytest.mark.parametrize(
    "kind,status", [(Kind.INVALID, 400), (Kind.UNAVAILABLE, 503), (Kind.INTERNAL, 500)]
)
async def test_the_first_answer_decides_the_status(server, ask, kind, status):
    task = await ask(generate_stream)

    server.reply.send(CoreError(kind, "not this one"), final=False)
    server.reply.send(answer(1))

    found = await task
    assert found.status == status
    assert event(found.body) == {"error": "not this one"}
    assert [event(part)["y"] async for part in found.more] == [1]


async def test_a_later_error_is_an_event(server, ask):
    task = await ask(generate_stream)

    server.reply.send(answer(0), final=False)
    server.reply.send(invalid("not\n\nthis one"), final=False)
    server.reply.send(answer(2))

    found = await task
    rest = [part async for part in found.more]
    assert found.status == 200
    assert rest[0] == b'data: {"error":"not\\n\\nthis one"}\n\n'
    assert event(rest[1])["y"] == 2


async def test_a_response_that_json_cannot_represent_is_an_error(server, ask):
    task = await ask(generate_stream)

    server.reply.send(answer(0), final=False)
    server.reply.send(answer(1, np.float16), final=False)
    server.reply.send(InferenceResponse("m", 1, [], parameters={"not JSON": object()}), final=False)
    server.reply.send(answer(3))

    found = await task
    half, strange, last = [event(part) async for part in found.more]
    assert "FP16" in half["error"]
    assert strange == {"error": "a response of model 'm' cannot be sent"}
    assert last["y"] == 3


async def test_closing_the_stream_cancels_the_request(server, ask):
    task = await ask(generate_stream)
    server.reply.send(answer(0), final=False)
    found = await task

    await found.more.aclose()

    assert server.reply.request.cancelled


async def test_closing_an_ended_stream_cancels_no_request(server, ask):
    task = await ask(generate_stream)
    server.reply.send(answer(0))
    found = await task

    await found.more.aclose()

    assert not server.reply.request.cancelled
