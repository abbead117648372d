"""HttpSender: HTTP by aiohttp, for https."""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence

import aiohttp

from core_bench.load.plan import Answer
from core_bench.load.senders import Lost, Marks, Refused, SequenceFields
from core_bench.model.address import Address
from core_bench.wire.request import WireRequest

_TOKENS = re.compile(rb'"completion_tokens"\s*:\s*(\d+)')
_TEXT = re.compile(rb'"(?:content|text|reasoning_content|reasoning|arguments)"\s*:\s*"[^"]')
_MOST_KEPT = 400


class HttpSender:
    """Sends the bodies of requests that were made for the compiled Loop, with their headers."""

    def __init__(
        self, address: Address, tls: ssl.SSLContext, requests: Sequence[WireRequest], answer: Answer
    ):
        self._address, self._tls, self._answer = address, tls, answer
        self._requests = [_parsed(each) for each in requests]
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False
        )

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    async def send(self, number: int, fields: SequenceFields, marks: Marks) -> None:
        assert self._session is not None
        path, headers, body, request = self._requests[number]
        if fields.id:
            body = patched(body, request, len(request.wire) - len(body), fields)
        url = f"https://{self._address.authority}{path}"
        try:
            async with self._session.post(url, data=body, headers=headers) as response:
                await self._read(response, marks)
        except aiohttp.ClientConnectorError as error:
            raise Lost(f"cannot connect: {error.os_error.strerror or error}") from None
        except aiohttp.ClientError as error:
            text = f"the server closed the connection: {error or type(error).__name__}"
            raise Refused(text) from None

    async def _read(self, response: aiohttp.ClientResponse, marks: Marks) -> None:
        if response.status != 200:
            text = (await response.read())[:_MOST_KEPT].decode("utf-8", "replace")
            raise Refused(f"HTTP {response.status} {text}")
        if self._answer in (Answer.WHOLE, Answer.CHAT):
            data = await response.read()
            if self._answer is Answer.CHAT and (found := _TOKENS.search(data)):
                marks.tokens = int(found[1])
            return
        async for line in response.content:
            if line.startswith(b"data:"):
                self._event(line[5:].strip(), marks)

    def _event(self, event: bytes, marks: Marks) -> None:
        if event.startswith(b'{"error"'):
            raise Refused("event " + event[:_MOST_KEPT].decode("utf-8", "replace"))
        if event == b"[DONE]":
            return
        if self._answer is Answer.EVENTS or _TEXT.search(event):
            marks.response()
        if self._answer is Answer.CHAT_EVENTS and (found := _TOKENS.search(event)):
            marks.tokens = int(found[1])


def patched(body: bytes, request: WireRequest, before: int, fields: SequenceFields) -> bytes:
    """Return the body with the fields of a sequence.

    before   size of what precedes the body in the wire form
    """
    made = bytearray(body)
    id_at, start_at, end_at = (at - before for at in request[1:])
    made[id_at : id_at + 20] = b"%20d" % fields.id
    made[start_at : start_at + 5] = b" true" if fields.start else b"false"
    made[end_at : end_at + 5] = b" true" if fields.end else b"false"
    return bytes(made)


def _parsed(request: WireRequest) -> tuple[str, dict[str, str], bytes, WireRequest]:
    head, _, body = request.wire.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    headers.pop("Content-Length")
    return first.split(" ")[1], headers, body, request
