"""HttpSender: sends records of HTTP as they came."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from core_capture.recording.headers import REDACTED
from core_capture.records.record import Record
from core_capture.replay.outcome import Outcome
from core_capture.replay.tls import Tls

_OF_THE_CONNECTION = frozenset(
    ("host", "connection", "content-length", "transfer-encoding", "expect", "upgrade")
)
_ACCEPT_S = 0.005  # a server reads open connections before one that it has not accepted yet
_LEAST_S = 0.05  # for a request whose client had left: it reaches the server at any speed
_ADDED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class HttpSender:
    """Sends records to a server over HTTP/1.1 (outcome.Sender).

    url       http://host:port, https://host:port or host:port
    headers   fields that replace those of the records
    timeout_s   for a whole answer; 0 for no limit
    tls         certificates for https://. Raises CoreError(INVALID) for those that cannot be used
    """

    def __init__(
        self, url: str, headers: Mapping[str, str], timeout_s: float, tls: Tls | None = None
    ):
        self._url = url.rstrip("/") if "://" in url else f"http://{url}"
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        is_secure = self._url.startswith("https://")
        self._context = (tls or Tls()).context() if is_secure else True
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self, record: Record, speed: float, begun: Callable[[], None] | None = None
    ) -> Outcome:
        start_ns = time.monotonic_ns()
        limit_s = self._timeout_s or math.inf
        if record.gone:
            limit_s = min(limit_s, max(_LEAST_S, record.duration_ns / 1e9 / speed))
        try:
            limit = None if math.isinf(limit_s) else limit_s
            outcome = await asyncio.wait_for(self._answer(record, begun), limit)
        except asyncio.TimeoutError:
            outcome = Outcome(-1, text=f"no answer within {limit_s:g} s", ended=record.gone)
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: a wrong target
            outcome = Outcome(-1, text=str(error) or type(error).__name__)
        outcome.duration_ns = time.monotonic_ns() - start_ns
        return outcome

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _answer(self, record: Record, begun: Callable[[], None] | None) -> Outcome:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=self._context),
                timeout=aiohttp.ClientTimeout(total=None),
                skip_auto_headers=_ADDED,
                auto_decompress=False,
                trace_configs=[_tracing()],
            )
        headers: CIMultiDict[str] = CIMultiDict()
        for name, value in record.fields:
            if name.lower() not in _OF_THE_CONNECTION and value != REDACTED:
                headers.add(name, value)
        headers.update(self._headers)
        url = URL(self._url + record.target, encoded=True)
        body = record.body if record.method != "GET" else None
        sending = _Sending(bool(body), begun)
        async with self._session.request(
            record.method, url, headers=headers, data=body, trace_request_ctx=sending
        ) as found:
            answer = await found.read()
            return Outcome(found.status, list(found.headers.items()), [answer])


class _Sending:
    """A request that is being sent, as aiohttp's signals get it."""

    def __init__(self, has_body: bool, begun: Callable[[], None] | None):
        self.has_body = has_body
        self.is_first = False  # of its connection
        self._begun = begun

    def wrote(self) -> None:
        """Take note that all bytes are written."""
        if self._begun is None:
            return
        if self.is_first:
            asyncio.get_running_loop().call_later(_ACCEPT_S, self._begun)
        else:
            self._begun()


def _tracing() -> aiohttp.TraceConfig:
    """Return what calls `begun` of each request when its connection is open, and its bytes are written."""

    async def connected(session: aiohttp.ClientSession, context: Any, parameters: Any) -> None:
        context.trace_request_ctx.is_first = True

    async def wrote_head(session: aiohttp.ClientSession, context: Any, parameters: Any) -> None:
        if not context.trace_request_ctx.has_body:
            context.trace_request_ctx.wrote()

    async def wrote_body(session: aiohttp.ClientSession, context: Any, parameters: Any) -> None:
        context.trace_request_ctx.wrote()

    found = aiohttp.TraceConfig()
    found.on_connection_create_end.append(connected)
    found.on_request_headers_sent.append(wrote_head)
    found.on_request_chunk_sent.append(wrote_body)
    return found
