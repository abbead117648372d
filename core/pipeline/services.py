"""ChainServices: what chains use of the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from core.caches.cache import Cache
from core.pipeline.instances.rate_limiter import RateLimiter
from core.system.host_policy import HostPolicies


@dataclass(frozen=True)
class ChainServices:
    """Services of the server for the chains of its models.

    cache      the response cache, for models with response_cache; or None
    limiter    the rate limiter; or None
    policies   the host policies of --host-policy; or None
    early      whether a request that cannot meet its deadline is refused at once
    """

    loop: asyncio.AbstractEventLoop
    clock_ns: Callable[[], int] = time.monotonic_ns
    cache: Cache | None = None
    limiter: RateLimiter | None = None
    policies: HostPolicies | None = None
    early: bool = True
