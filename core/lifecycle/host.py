"""Host: the resources of the process that a model version uses while it loads and unloads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

from core import plugins
from core.backend import Backend, implements
from core.caches import Cache
from core.config import ModelConfig, Signature
from core.errors import internal
from core.lifecycle.backends import BackendPool
from core.options import Options
from core.pipeline.endpoint import Handler
from core.pipeline.endpoint_table import EndpointTable
from core.pipeline.instances.rate_limiter import RateLimiter
from core.repository import ModelDirectory, ModelSource
from core.request import NEWEST, InferenceRequest
from core.response import Reply
from core.system.host_policy import HostPolicies
from core.telemetry.metrics.detailed import statistics_of, warn_of_unknown_families
from core.telemetry.metrics.settings import MetricSettings
from core.telemetry.statistics import Statistics

T = TypeVar("T")
Agree = Callable[[str, str], Awaitable[str]]
Overlay = Callable[[ModelSource, ModelConfig], ModelConfig]
Refresh = Callable[[Any], None]

_THREADS = 32  # with the default of 4 loads at once, an unload does not wait behind loads


class ServedModels(Protocol):
    """The models of the server, for models that call others; core.control.models.Models. Loop thread."""

    def infer_step(self, request: InferenceRequest) -> Reply: ...
    def traced(self, request: InferenceRequest, name: str, version: int, to: Handler) -> Reply: ...
    def signature(self, name: str, version: int = NEWEST) -> Signature: ...
    def takes_device(self, name: str, version: int = NEWEST) -> bool: ...
    def content(self, name: str, version: int = NEWEST) -> str: ...
    def is_ready(self, name: str, version: int = NEWEST) -> bool: ...
    async def check(self, name: str, version: int = NEWEST) -> bool: ...


class Host:
    """Worker threads, opened backends and the limit of parallel loads. One for each server.

    models         for models that call other models; set before the first load
    cache          response cache, None if there is none
    limiter        rate limiter of instances that share resources, None if there is none
    gpus           ids of the GPUs that instances may be placed on
    find_backend   name → Backend; None: installed backends and those in --backend-directory
    endpoints      those of the versions that serve; each request is looked up in them
    agree          (model, objection) → why the other workers refuse to serve the loaded model; objection:
                   why it could not be loaded here, "" if it could. None: there are no other workers
    backends       pool of open backends
    policies       host policies (--host-policy), for the threads of instances
    loading        --model-load-thread-count slots; a version that loads holds one
    overlay        (source, its completed configuration) → the one to serve by, a copy if it differs; what it
                   raises fails the load. Worker thread; a plugin sets it by `overlay_by`
    refresh        called on the loop with a READY version that has new instances, to configure what is newer
    """

    def __init__(
        self,
        options: Options,
        loop: asyncio.AbstractEventLoop,
        endpoints: EndpointTable,
        *,
        cache: Cache | None = None,
        limiter: RateLimiter | None = None,
        gpus: Sequence[int] = (),
        find_backend: Callable[[str], Backend] | None = None,
        agree: Agree | None = None,
    ):
        self.options = options
        self.endpoints = endpoints
        self.loop = loop
        self.models: ServedModels
        self.cache = cache
        self.limiter = limiter
        self.gpus = tuple(gpus)
        find = find_backend or partial(plugins.backend, directory=options.backend_directory)
        self.backends = BackendPool(self.run, find, options.backend_config)
        self.policies = HostPolicies(options.host_policy)
        self._agree = agree
        self._metrics = MetricSettings.of(options.metrics_config)
        self.loading = asyncio.Semaphore(max(1, options.model_load_thread_count))
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="core-lifecycle")
        self.overlay_by(lambda source, config: config)

    def place_on(self, gpus: Sequence[int]) -> None:
        """Place instances on these GPUs only. Call it before the first load."""
        self.gpus = tuple(gpus)

    def overlay_by(self, overlay: Overlay, refresh: Refresh = lambda version: None) -> None:
        """Load each version by what `overlay` makes of its configuration. Call it before the first load."""
        self.overlay, self.refresh = overlay, refresh

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function that may block on a worker thread, and return its result.

        SystemExit, KeyboardInterrupt, GeneratorExit and StopIteration arrive as CoreError(INTERNAL).
        """
        return await self.loop.run_in_executor(self._threads, _contained, function, args)

    async def agree(self, model: str, objection: str) -> str:
        """Return why this or another worker refuses to serve a model; "" if all can serve it."""
        return objection if self._agree is None else await self._agree(model, objection)

    def statistics_of(self, config: ModelConfig) -> Statistics:
        """Return new counters for a version; with metrics, --metrics-config may add latency distributions."""
        if not self.options.allow_metrics:
            return Statistics()
        warn_of_unknown_families(config)
        return statistics_of(self._metrics, config)

    async def let_go(self, directory: ModelDirectory) -> None:
        """Remove one user of a directory. After the last, remove what core made and one user of `origin`."""
        if directory.let_go():
            if implements(directory, ModelDirectory, "remove"):
                await self.run(directory.remove)
            if directory.origin is not None:
                await self.let_go(directory.origin)

    def close(self) -> None:
        """End the worker threads. They must be idle, because this call waits for them."""
        self._threads.shutdown()


def _contained(function: Callable[..., T], args: tuple[Any, ...]) -> T:
    try:
        return function(*args)
    except (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration) as error:
        # The first three would end the loop, the last cannot travel through a Future.
        raise internal(f"{type(error).__name__}: {error}") from error
