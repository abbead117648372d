"""Announcements: what one server tells of its models, so that the router need not wait for the next check.

GET /v2/repository/changes ─► events ─► [Announcements] ─► Watch.announced ─► a check at once

Servers of core have this route if core-router is installed there. Without it, the checks alone find changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson

if TYPE_CHECKING:
    from core_router.servers.watch import Watch

logger = logging.getLogger("core_router")

_WITHOUT_S = 60.0  # until a server that has no such route is asked again
# Servers send something every 20 s.
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=60)


class Announcements:
    """Reads the announcements of one server again and again. Event loop only.

    watch        of the server
    session      sends the requests
    interval_s   seconds until a server is asked again whose announcements have ended
    arguments    of each request: headers such as a token, and those of TLS
    """

    def __init__(
        self,
        watch: Watch,
        session: aiohttp.ClientSession,
        interval_s: float,
        arguments: Mapping[str, Any],
    ):
        self._watch = watch
        self._session = session
        self._interval_s = interval_s
        self._arguments = arguments

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            wait_s = self._interval_s
            try:
                wait_s = await self._read()
            except (aiohttp.ClientError, OSError, asyncio.TimeoutError):
                pass  # the checks say what is wrong with the server
            except Exception:  # a defect must not end the announcements of a server
                logger.exception("the announcements of %s cannot be used", self._watch.server.name)
                wait_s = _WITHOUT_S
            finally:
                self._watch.announces = False
            await asyncio.sleep(wait_s)

    async def _read(self) -> float:
        """Read until the end. Return the seconds to wait then.

        Raises aiohttp.ClientError, OSError or TimeoutError.
        """
        async with self._session.get(
            f"{self._watch.server.address.url}/v2/repository/changes",
            timeout=_TIMEOUT,
            allow_redirects=False,
            **self._arguments,
        ) as response:
            if response.status != 200 or response.content_type != "text/event-stream":
                return _WITHOUT_S
            self._watch.announces = True
            async for line in response.content:
                if line.startswith(b"data:"):
                    self._watch.announced(models_of(line[5:]))
        return self._interval_s


def models_of(data: bytes) -> list[str]:
    """Return the models of an event; none for other data, after which a check finds what has changed."""
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return []
    models = found.get("models") if isinstance(found, dict) else None
    return [each for each in models if isinstance(each, str)] if isinstance(models, list) else []
