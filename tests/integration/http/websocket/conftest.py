"""generate_stream over WebSocket: a real HttpFrontend, a real client, a server with responses of a test."""

import asyncio
import json

import aiohttp
import numpy as np
import pytest
from integration.http.scripted_server import PATIENCE_S

from core.response import InferenceResponse
from core.tensor import Tensor


@pytest.fixture
async def connect():
    """Open a WebSocket to a server."""
    async with aiohttp.ClientSession() as session:

        def open_socket(server, path="/v2/models/m/generate_stream", **options):
            scheme = "https" if "ssl" in options else "http"
            url = f"{scheme}://127.0.0.1:{server.frontend.port}{path}"
            return session.ws_connect(url, **options)

        yield open_socket


def answer(reply, number):
    outputs = [Tensor.of("number", np.array([number], np.int32))]
    return InferenceResponse("m", 1, outputs, id=reply.request.id)


async def received(socket):
    return json.loads(await asyncio.wait_for(socket.receive_str(), PATIENCE_S))


async def ended(socket):
    """The close code."""
    message = await asyncio.wait_for(socket.receive(), PATIENCE_S)
    assert message.type is aiohttp.WSMsgType.CLOSE, message
    return message.data
