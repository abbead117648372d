"""Connections to the HTTP port are opened within a time, and not for who has left."""

import asyncio

import pytest
from core_ray.http_connections import HttpConnection, HttpConnections

URL = "http://127.0.0.1:8000"


class Opened:
    """A connection that is open until it is closed."""

    is_open = True

    def close(self):
        self.is_open = False


def test_a_cancellation_while_the_connection_opens_is_not_lost(monkeypatch):
    opened = Opened()

    async def to(*_):
        await asyncio.sleep(0)
        taking.cancel()  # arrives in the very moment in which the connection is open
        return opened

    async def run():
        nonlocal taking
        taking = asyncio.create_task(HttpConnections(URL).take())
        with pytest.raises(asyncio.CancelledError):
            await taking
        while opened.is_open:
            await asyncio.sleep(0)

    taking = None
    monkeypatch.setattr(HttpConnection, "to", to)
    asyncio.run(asyncio.wait_for(run(), 20))


def test_a_port_that_does_not_answer_is_an_error(monkeypatch):
    ended = []

    async def to(*_):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def run():
        with pytest.raises(
            ConnectionError, match=r"127\.0\.0\.1:8000 has not answered within 0\.01 s"
        ):
            await HttpConnections(URL).take()
        while not ended:
            await asyncio.sleep(0)

    monkeypatch.setattr("core_ray.http_connections._OPEN_S", 0.01)
    monkeypatch.setattr(HttpConnection, "to", to)
    asyncio.run(asyncio.wait_for(run(), 20))
