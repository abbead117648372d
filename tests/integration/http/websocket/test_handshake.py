"""The handshake of a WebSocket: what is refused before it, and TLS."""

import ssl

import aiohttp
import pytest

from .conftest import answer, received


async def test_a_deadline_that_is_none_is_refused_before_the_handshake(serve, connect):
    server = await serve()

    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        await connect(server, headers={"grpc-timeout": "soon"})

    assert error.value.status == 400


async def test_it_is_there_over_tls(serve, connect, certificates):
    server = await serve(
        http_use_ssl=True,
        http_server_cert=str(certificates.server_crt),
        http_server_key=str(certificates.server_key),
    )
    trusted = ssl.create_default_context(cafile=certificates.root_crt)
    async with connect(server, ssl=trusted) as socket:
        await socket.send_str('{"x":"hi"}')
        reply = await server.reply()
        reply.send(answer(reply, 1), True)

        assert (await received(socket))["number"] == 1
        assert await received(socket) == {"final": True}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v2/models/other/generate_stream", 404),
        ("/v2/models/m/generate", 405),
        ("/v2/models/m/versions/99999999999999999999/generate_stream", 400),
        ("/v2/nothing", 404),
    ],
)
async def test_a_path_without_stream_is_refused_before_the_handshake(serve, connect, path, status):
    server = await serve()
    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        await connect(server, path)

    assert error.value.status == status


async def test_a_page_of_another_origin_is_refused(serve, connect):
    server = await serve()
    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        await connect(server, origin="http://elsewhere.example")
    assert error.value.status == 403

    async with connect(server, origin=f"http://127.0.0.1:{server.frontend.port}") as socket:
        assert not socket.closed


async def test_a_restricted_interface_needs_its_header(serve, connect):
    server = await serve(http_restricted_api={"inference": ("key", "secret")})
    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        await connect(server)
    assert error.value.status == 403

    async with connect(server, headers={"key": "secret"}) as socket:
        assert not socket.closed
