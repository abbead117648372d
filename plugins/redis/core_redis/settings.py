"""Settings of --cache-config=redis,<setting>=<value>, with the names of Triton's Redis cache.

Triton has no `lookup_timeout`, no `ttl` and no `largest`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import invalid

USER = "TRITONCACHE_REDIS_USERNAME"
PASSWORD = "TRITONCACHE_REDIS_PASSWORD"

_NAMES = (
    "host", "port", "user", "password", "db", "connect_timeout", "socket_timeout", "pool_size",
    "wait_timeout", "lookup_timeout", "ttl", "largest", "tls_enabled", "cert", "key", "cacert", "cacert_dir",
)  # fmt: skip


@dataclass
class RedisSettings:
    """The parsed settings.

    where              host:port, for the log
    lookup_timeout_s   seconds after which a lookup is given up, and counts as a miss
    ttl_s              seconds that a response is kept; 0: the Redis server decides
    largest            bytes of the tensors of a response; larger ones are not stored; 0 for no limit
    tls                whether connections are encrypted
    connection         keyword arguments of redis.asyncio.BlockingConnectionPool
    """

    where: str
    lookup_timeout_s: float
    ttl_s: int
    largest: int
    tls: bool
    connection: dict[str, Any]


def redis_cache_settings(settings: Mapping[str, str]) -> RedisSettings:
    """Return the parsed settings. A user or password that they lack is taken from the environment.

    Raises CoreError(INVALID) for an unknown setting, an invalid value, no host, or a certificate without TLS.
    """
    if unknown := sorted(set(settings) - set(_NAMES)):
        raise _wrong(f"no setting '{unknown[0]}'; there are {', '.join(_NAMES)}")
    if not settings.get("host"):
        raise _wrong("no host")
    host, port = settings["host"], _number(settings, "port", 6379)
    if not 1 <= port <= 65535:
        raise _wrong(f"port={port}; a port is a number from 1 to 65535")
    if (tls_text := settings.get("tls_enabled", "false").lower()) not in ("true", "false"):
        raise _wrong(f"tls_enabled={tls_text}; it is true or false")
    tls = tls_text == "true"
    connection: dict[str, Any] = {
        "host": host,
        "port": port,
        "db": _number(settings, "db", 0),
        "username": settings.get("user") or os.environ.get(USER) or None,
        "password": settings.get("password") or os.environ.get(PASSWORD) or None,
        "socket_connect_timeout": _seconds(settings, "connect_timeout", 0),
        "socket_timeout": _seconds(settings, "socket_timeout", 0),
        "max_connections": _number(settings, "pool_size", 8) or 1,
        "timeout": _seconds(settings, "wait_timeout", 1000),
    }
    files = {
        "ssl_certfile": settings.get("cert"),
        "ssl_keyfile": settings.get("key"),
        "ssl_ca_certs": settings.get("cacert"),
        "ssl_ca_path": settings.get("cacert_dir"),
    }
    if tls:
        connection |= {name: path for name, path in files.items() if path}
    elif any(files.values()):
        raise _wrong("a certificate or key, but not tls_enabled=true")
    return RedisSettings(
        where=f"{host}:{port}",
        lookup_timeout_s=_seconds(settings, "lookup_timeout", 100) or 0.1,
        ttl_s=_number(settings, "ttl", 0),
        largest=_number(settings, "largest", 0),
        tls=tls,
        connection=connection,
    )


def _number(settings: Mapping[str, str], name: str, default: int) -> int:
    text = settings.get(name, str(default))
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise _wrong(f"{name}={text}; it is a number from 0 to 999999999")
    return int(text)


def _seconds(settings: Mapping[str, str], name: str, default_ms: int) -> float | None:
    """Return a setting, which is in milliseconds, in seconds; None if it is 0, which means no time limit.

    default_ms   its value where it is not given
    """
    return _number(settings, name, default_ms) / 1000 or None


def _wrong(what: str) -> Exception:
    return invalid(f"--cache-config=redis: {what}; try --cache-config=redis,host=localhost")
