"""Cached: answers equal requests to one model version from the response cache.

admit ─► [Cached] ─► batcher.  Only for models with `response_cache { enable: true }`, on servers with
--cache-config. Unlike Triton's, the key contains everything that can change a response: also shapes,
parameters and requested outputs. core.caches stores the responses.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from core.config import Signature
from core.errors import CoreError, cancelled, internal
from core.native.gather import joined
from core.pipeline.endpoint import Handler
from core.pipeline.services import ChainServices
from core.request import DeviceOutput, InferenceRequest
from core.response import InferenceResponse, Reply
from core.telemetry.statistics import Statistics
from core.tensor import Tensor

LARGE_BYTES = 1 << 20  # of inputs or outputs: a key or a copy of more takes milliseconds

_threads = ThreadPoolExecutor(2, thread_name_prefix="cache")


class Cached:
    """Handler that looks a request up in the cache before it calls the inner handler.

    Not thread-safe: call from the event loop only.

    on_final   called when this handler itself ends a request, other than by an exception of `__call__`
    content    returns a digest of the version's files, to distinguish versions of the same name and number
    """

    def __init__(
        self,
        inner: Handler,
        services: ChainServices,
        signature: Signature,
        statistics: Statistics,
        on_final: Callable[[], None],
        content: Callable[[], str] = str,
    ):
        assert services.cache is not None
        self._content = content
        self.inner = inner
        self._cache = services.cache
        self._signature = signature
        self._statistics = statistics
        self._on_final = on_final
        self._clock_ns = services.clock_ns

    def __call__(self, request: InferenceRequest) -> Reply:
        if request.shared:  # the client may change the inputs before the model reads them
            return self.inner(request)
        try:
            content = self._content()
        except CoreError:  # a step of the ensemble does not serve; the inner handler reports that
            return self.inner(request)
        start_ns = self._clock_ns()
        lookup = _Lookup(self, request, start_ns)
        if sum(tensor.byte_size for tensor in request.inputs.values()) > LARGE_BYTES:
            key = _threads.submit(cache_key, request, self._signature, content)
            _then(self._look_up, lookup, key)  # else it would block the event loop
        else:
            lookup.key = cache_key(request, self._signature, content)
            self._cache.ask_for(request, lookup.key, lookup.found)
            if lookup.answered:
                return self.proceed(lookup)
        lookup.reply = Reply(request)
        return lookup.reply

    def _look_up(self, lookup: _Lookup, key: Future[bytes]) -> None:
        try:
            lookup.key = key.result()
        except Exception as error:  # the bytes cannot be read, for example those of a device
            lookup.found(internal(f"no key for the response cache can be made: {error}"))
        else:
            self._cache.ask_for(lookup.request, lookup.key, lookup.found)

    def proceed_later(self, lookup: _Lookup, reply: Reply) -> None:
        """Proceed with a request after `__call__` has returned its Reply.

        reply   gets the responses, and the error if the request is cancelled or refused
        """
        try:
            inner = self.proceed(lookup)
        except CoreError as error:
            self._on_final()
            reply.send(error, True)
            return
        inner.listen(reply.send)

    def proceed(self, lookup: _Lookup) -> Reply:
        """Answer the request with what the cache has found, or give it to the inner handler.

        Raise CoreError if the request is cancelled, or refused by the inner handler or the cache.
        """
        request = lookup.request
        found = cancelled() if request.cancelled else lookup.outputs
        if isinstance(found, CoreError):
            reason = "CANCELED" if request.cancelled else "OTHER"
            self._statistics.failed(reason, self._clock_ns() - request.arrival_ns)
            self._cache.lost(request, lookup.key, found)
            raise found
        lookup_ns = self._clock_ns() - lookup.start_ns
        self._cache.counters.lookup_ns += lookup_ns
        if found is not None:
            if request.trace is not None:
                request.trace.span("CACHE_HIT_LOOKUP", lookup.start_ns, lookup.start_ns + lookup_ns)
            return self._hit(lookup, found, lookup_ns)
        if any(isinstance(output, DeviceOutput) for output in request.outputs):
            # The cache needs host memory. The responding thread copies, not the event loop.
            request.outputs = tuple(
                DeviceOutput(each.name, host=True) if isinstance(each, DeviceOutput) else each
                for each in request.outputs
            )
        try:
            inner = self.inner(request)
        except CoreError as error:
            self._cache.lost(request, lookup.key, error)
            raise
        outer = Reply(request)

        def arrived(item: InferenceResponse | CoreError | None, final: bool) -> None:
            before_ns = self._clock_ns()
            if isinstance(item, InferenceResponse):
                self._keep(lookup, item.outputs)
            else:
                self._cache.lost(request, lookup.key, item)
            insert_ns = self._clock_ns() - before_ns
            self._cache.counters.insertion_ns += insert_ns
            self._statistics.missed(lookup_ns + insert_ns)
            outer.send(item, final)

        inner.listen(arrived)
        return outer

    def _keep(self, lookup: _Lookup, outputs: list[Tensor]) -> None:
        """Store outputs (no parameters) if the cache may hold them. A thread copies large ones first."""
        size = sum(tensor.byte_size for tensor in outputs)
        if size <= LARGE_BYTES:
            self._cache.insert_for(lookup.request, lookup.key, outputs)
        elif self._cache.may_hold(size):
            _then(self._keep_copies, lookup, _threads.submit(_copies, outputs))
        else:
            self._cache.lost(lookup.request, lookup.key, None)

    def _keep_copies(self, lookup: _Lookup, copies: Future[list[Tensor]]) -> None:
        if copies.exception() is None:
            self._cache.insert_for(lookup.request, lookup.key, copies.result())
        else:  # no memory for the copies: the response is not stored
            self._cache.counters.failures += 1
            self._cache.lost(lookup.request, lookup.key, None)

    def _hit(self, lookup: _Lookup, outputs: list[Tensor], lookup_ns: int) -> Reply:
        request = lookup.request
        reply = Reply(request)
        queue_ns = lookup.start_ns - request.arrival_ns
        self._statistics.hit(lookup_ns, queue_ns, self._clock_ns() - request.arrival_ns)
        reply.send(
            InferenceResponse(
                self._signature.name, self._signature.version, list(outputs), id=request.id
            )
        )
        self._on_final()
        return reply


class _Lookup:
    """A lookup in the cache, and the request that waits for it.

    key       b"" until it is computed
    outputs   what was found, None for nothing, or the error with which the request fails
    reply     None until the handler has returned
    """

    def __init__(self, cached: Cached, request: InferenceRequest, start_ns: int):
        self.request = request
        self.key = b""
        self.start_ns = start_ns
        self.answered = False
        self.outputs: list[Tensor] | CoreError | None = None
        self.reply: Reply | None = None
        self._cached = cached

    def found(self, outputs: list[Tensor] | CoreError | None) -> None:
        """Take the result of the lookup. If `__call__` has returned, go on with the request."""
        self.outputs = outputs
        self.answered = True
        if self.reply is not None:
            self._cached.proceed_later(self, self.reply)


def _then(done: Callable[[_Lookup, Future[Any]], None], lookup: _Lookup, work: Future[Any]) -> None:
    """Call done(lookup, work) on the event loop when `work` is done, unless the loop has ended."""
    loop = asyncio.get_running_loop()

    def call(work: Future[Any]) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(done, lookup, work)

    work.add_done_callback(call)


def _copies(outputs: list[Tensor]) -> list[Tensor]:
    return [Tensor(t.name, t.dtype, t.shape, raw=joined([t.raw])) for t in outputs]


def cache_key(request: InferenceRequest, signature: Signature, content: str = "") -> bytes:
    """Return the key of a request: 32 bytes. Any thread, while no other uses the request.

    Id, priority and timeout of the request are not part of the key.
    """
    digest = hashlib.blake2b(digest_size=32)
    head = (
        signature.name,
        signature.version,
        content,
        [(output.name, output.class_count) for output in request.outputs],
        sorted(request.parameters.items()),
        sorted((t.name, t.dtype.name, t.shape) for t in request.inputs.values()),
    )
    digest.update(repr(head).encode())
    for name in sorted(request.inputs):
        digest.update(request.inputs[name].raw)
    return digest.digest()
