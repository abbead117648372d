"""RedisCache: responses in a Redis server, which other processes and machines may share.

If the Redis server is slow, unreachable or full, requests do not fail: they go to their models. Failures are
counted, and logged at most every 30 seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from redis.asyncio import BlockingConnectionPool, Redis, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from core.caches import Cache, Found, pack, unpack
from core.tensor import Tensor
from core_redis.settings import RedisSettings, redis_cache_settings

Result = TypeVar("Result")

logger = logging.getLogger("core")

_PREFIX = b"core:cache:"
_REST_S = 1.0  # pause of all accesses after a failure: a dead server must not delay every request
_LOG_EVERY_S = 30.0
_INSERT_TIMEOUT_S = 5.0
_MOST_UNSENT = 64 << 20  # bytes of responses that are being sent; further responses are not cached


class RedisCache(Cache):
    """Cached responses in a Redis server. Call from the loop thread only.

    client   a redis.asyncio.Redis, which `close` closes
    """

    def __init__(self, client: Any, settings: RedisSettings):
        super().__init__()
        self._client = client
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._unsent = 0
        self._rests_until = self._logs_from = 0.0

    def ask(self, key: bytes, found: Found) -> None:
        """Look up a response and call `found` with it; with None if the server has none, fails or is slow.

        `found` is called later; but at once, with None, in the second after a failure.
        """
        self.counters.lookups += 1
        if self._loop.time() < self._rests_until:
            found(None)
        else:
            # A callback of the task, because a task that is cancelled before its start runs no code.
            self._start(self._lookup(key)).add_done_callback(partial(_tell, found))

    async def _lookup(self, key: bytes) -> list[Tensor] | None:
        try:
            data = await asyncio.wait_for(
                self._client.get(_name(key)), self._settings.lookup_timeout_s
            )
            if data is None:
                return None
            outputs = unpack(data)
        except Exception as error:
            self._failed("look up an answer", error)
            return None
        self.counters.hits += 1
        return outputs

    def insert(self, key: bytes, outputs: list[Tensor]) -> None:
        """Begin to send a copy of `outputs` to the server, and return.

        Does nothing for a response that is too large, in the second after a failure, or if more than 64 MiB
        would then be on their way.
        """
        size = sum(tensor.byte_size for tensor in outputs)
        if self._loop.time() < self._rests_until or not self.may_hold(size):
            return
        self._unsent += size
        self._start(self._insert(_name(key), pack(outputs), size))

    def may_hold(self, size: int) -> bool:
        """Return whether a response with `size` bytes of tensors may be sent now."""
        return size <= (self._settings.largest or size) and self._unsent + size <= _MOST_UNSENT

    async def _insert(self, name: bytes, data: bytes, size: int) -> None:
        try:
            kept = self._client.set(name, data, ex=self._settings.ttl_s or None)
            await asyncio.wait_for(kept, _INSERT_TIMEOUT_S)
            self.counters.insertions += 1
        except Exception as error:
            self._failed("keep an answer", error)
        finally:
            self._unsent -= size

    async def close(self) -> None:
        """Cancel running lookups, which find None then, and insertions; close the connections."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await asyncio.wait_for(self._client.aclose(), _INSERT_TIMEOUT_S)
        except Exception as error:
            logger.warning("cache 'redis': cannot close its connections: %r", error)

    def _start(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = self._loop.create_task(work)
        self._tasks.add(task)  # the loop itself holds no reference
        task.add_done_callback(self._tasks.discard)
        return task

    def _failed(self, what: str, error: Exception) -> None:
        self.counters.failures += 1
        now = self._loop.time()
        if not isinstance(error, ValueError):  # an invalid entry is no failure of the server
            self._rests_until = now + _REST_S
        if now >= self._logs_from:
            self._logs_from = now + _LOG_EVERY_S
            logger.warning(
                "cache 'redis' at %s cannot %s (%d failures until now), requests go to their models: "
                "%s",
                self._settings.where,
                what,
                self.counters.failures,
                str(error) or type(error).__name__,
            )


def redis_cache(settings: Mapping[str, str]) -> RedisCache:
    """Return the cache of --cache-config=redis,host=…; it connects at the first request.

    Raises CoreError(INVALID) for an invalid setting.
    """
    found = redis_cache_settings(settings)
    if found.tls:
        found.connection["connection_class"] = SSLConnection
    pool = BlockingConnectionPool(
        # Retry once: the server may have closed an idle connection.
        retry=Retry(NoBackoff(), 1),
        protocol=2,
        **found.connection,
    )
    return RedisCache(Redis.from_pool(pool), found)


def _tell(found: Found, task: asyncio.Task[list[Tensor] | None]) -> None:
    """Call `found` with the result of the finished lookup `task`; with None if `close` has cancelled it."""
    found(None if task.cancelled() else task.result())


def _name(key: bytes) -> bytes:
    return _PREFIX + key.hex().encode()
