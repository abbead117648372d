"""LoadReports: how busy one server is with the requests of all its clients.

metrics of the server ─► [LoadReports] ─► wait of each model ─► ServerModel.cost
                                       └► text for the router's own metrics, ServerMetrics
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from time import monotonic

import aiohttp

from core_router.operate.server_metrics import ServerMetrics, start_of
from core_router.servers.server import Server
from core_router.servers.tls import ServerTls, reason_of

logger = logging.getLogger("core_router")

_LABELS = rb'((?:[^"}]|"(?:[^"\\]|\\.)*")*)'
_WAIT = re.compile(
    rb"^core_inference_wait_estimate_seconds\{" + _LABELS + rb"\} (\S+)", re.MULTILINE
)
_MODEL = re.compile(rb'(?:^|,)model="((?:[^"\\]|\\.)*)"')
_ESCAPES = re.compile(r"\\(.)")
_MOST_REPORTS = 3  # that may be missing before the last one is too old


class LoadReports:
    """Reads the metrics of one server again and again. Event loop only.

    metrics      of all servers
    session      sends the requests
    interval_s   seconds between two of them
    timeout_s    seconds after which one has failed
    headers      sent with each request, such as a token
    tls          of the connections
    """

    def __init__(
        self,
        server: Server,
        metrics: ServerMetrics,
        session: aiohttp.ClientSession,
        interval_s: float,
        timeout_s: float,
        headers: Mapping[str, str],
        tls: ServerTls,
    ):
        self.server = server
        self._metrics = metrics
        self._has_joined = False
        self._start = b""  # when the process was started that the last metrics are of
        self._session = session
        self._interval_s = interval_s
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._headers = headers
        self._url = server.address.metrics_url
        self._tls = tls.to_metrics(server.address)

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            try:
                await self.read()
            except Exception:  # a defect must not end the reports of a server
                logger.exception("the metrics of server %s cannot be used", self.server.name)
            await asyncio.sleep(self._interval_s)

    async def read(self) -> None:
        """Read the metrics once. Without them, the server has no reports until they are back."""
        try:
            async with self._session.get(
                self._url,
                headers=self._headers,
                timeout=self._timeout,
                allow_redirects=False,
                **self._tls,
            ) as response:
                text = await response.read() if response.status == 200 else b""
                reason = f"status {response.status}"
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as error:
            text, reason = b"", reason_of(error)
        server = self.server
        if server.metrics and not text:
            logger.warning("server %s has no load reports: %s: %s", server.name, self._url, reason)
        await self._count(server.metrics, text)
        server.metrics = text
        until_s = monotonic() + _MOST_REPORTS * (self._interval_s + 0.1)
        for name, wait_s in waits_of(text).items():
            if (found := server.models.get(name)) is not None:
                found.report(wait_s, until_s)

    async def _count(self, before: bytes, text: bytes) -> None:
        """Count from the server's first metrics on, and up to its last ones before a restart."""
        name, metrics, steps = self.server.name, self._metrics, None
        start = start_of(text) or self._start
        if not self._has_joined:
            if text:
                self._has_joined = True
                steps = metrics.join(name, text)
        elif self._start and start != self._start:
            metrics.restart(name, before)  # no scrape may come between it and the newer text
        elif before and not text:
            steps = metrics.add(name, before)
        elif text and not before:  # a restart that the metrics do not show: the counts have fallen
            steps = metrics.add(name, text)
        self._start = start
        for _ in steps or ():
            await asyncio.sleep(0)  # requests go on


def waits_of(text: bytes) -> dict[str, float]:
    """Return for each model the longest wait of its versions in seconds, from the metrics of a server."""
    found: dict[str, float] = {}
    for labels, value in _WAIT.findall(text):
        if (match := _MODEL.search(labels)) is not None:
            name = _ESCAPES.sub(_unescaped, match[1].decode())
            found[name] = max(found.get(name, 0.0), float(value))
    return found


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
