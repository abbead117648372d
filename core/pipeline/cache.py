"""The response cache: equal requests to one model version get the answer of the first.

admit ─► [Cached] ─► batcher.  Only for models with `response_cache { enable: true }`, on servers with
--cache-config. Unlike the original's, the key holds everything that may change an answer: shapes,
parameters and wanted outputs too. Where answers are kept is core.caches.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from core.caches import Cache
from core.config import Signature
from core.errors import CoreError, cancelled, internal
from core.native.gather import joined
from core.pipeline.intake import Handler
from core.request import DeviceOutput, InferenceRequest, RequestedOutput
from core.response import InferenceResponse, Reply
from core.telemetry.statistics import Statistics
from core.tensor import Tensor

LARGE_BYTES = 1024 * 1024  # of inputs or outputs: from here on a key or a copy takes milliseconds

_threads = ThreadPoolExecutor(2, thread_name_prefix="cache")


class Cached:
    """A layer before a model's scheduler. Loop thread only.

    content   gives what else tells this version from others of its name and number: a digest of its files
    """

    def __init__(
        self,
        inner: Handler,
        cache: Cache,
        signature: Signature,
        statistics: Statistics,
        on_final: Callable[[], None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
        content: Callable[[], str] = str,
    ):
        self._content = content
        self._inner = inner
        self._cache = cache
        self._signature = signature
        self._statistics = statistics
        self._on_final = on_final
        self._clock_ns = clock_ns

    def __call__(self, request: InferenceRequest) -> Reply:
        if request.shared:  # its inputs may be others by the time that the model sees them
            return self._inner(request)
        try:
            content = self._content()
        except CoreError:  # a step of the ensemble is gone; who runs it says so
            return self._inner(request)
        start_ns = self._clock_ns()
        lookup = _Lookup(self, request, start_ns)
        if sum(tensor.byte_size for tensor in request.inputs.values()) > LARGE_BYTES:
            self._ask_later(lookup, content)
        else:
            lookup.key = cache_key(request, self._signature, content)
            self._cache.ask(lookup.key, lookup.found)
            if lookup.answered:
                return self.proceed(lookup)
        lookup.reply = Reply(request)
        return lookup.reply

    def _ask_later(self, lookup: _Lookup, content: str) -> None:
        """Ask the cache once another thread has made the key: others do not wait for large inputs."""
        _then(
            self._ask, lookup, _threads.submit(cache_key, lookup.request, self._signature, content)
        )

    def _ask(self, lookup: _Lookup, key: Future[bytes]) -> None:
        try:
            lookup.key = key.result()
        except Exception as error:  # bytes that cannot be had, such as those of a device
            assert lookup.reply is not None
            self._statistics.failed("OTHER", self._clock_ns() - lookup.request.arrival_ns)
            self._on_final()
            lookup.reply.send(internal(f"no key for the response cache can be made: {error}"), True)
            return
        self._cache.ask(lookup.key, lookup.found)

    def proceed_later(self, lookup: _Lookup, reply: Reply) -> None:
        """The same as `proceed`, for who has a reply already."""
        request = lookup.request
        if request.cancelled:
            self._statistics.failed("CANCELED", self._clock_ns() - request.arrival_ns)
            self._on_final()
            reply.send(cancelled(), True)
            return
        try:
            inner = self.proceed(lookup)
        except CoreError as error:
            self._on_final()
            reply.send(error, True)
            return
        inner.listen(reply.send)

    def proceed(self, lookup: _Lookup) -> Reply:
        """The cache has answered: so does it to the request, or the model.

        Raises CoreError for what the model refuses at once.
        """
        request = lookup.request
        lookup_ns = self._clock_ns() - lookup.start_ns
        self._cache.counters.lookup_ns += lookup_ns
        if lookup.outputs is not None:
            if request.trace is not None:
                request.trace.span("CACHE_HIT_LOOKUP", lookup.start_ns, lookup.start_ns + lookup_ns)
            return self._hit(lookup, lookup.outputs, lookup_ns)
        if any(isinstance(output, DeviceOutput) for output in request.outputs):
            # The cache needs host memory: the copy is made by who answers, not on the loop.
            request.outputs = tuple(map(_also_on_host, request.outputs))
        inner = self._inner(request)
        outer = Reply(request)

        def arrived(item: InferenceResponse | CoreError | None, final: bool) -> None:
            insert_ns = 0
            if isinstance(item, InferenceResponse):
                before_ns = self._clock_ns()
                self._keep(lookup, item.outputs)
                insert_ns = self._clock_ns() - before_ns
                self._cache.counters.insertion_ns += insert_ns
            self._statistics.missed(lookup_ns + insert_ns)
            outer.send(item, final)

        inner.listen(arrived)
        return outer

    def _keep(self, lookup: _Lookup, outputs: list[Tensor]) -> None:
        """Give an answer to the cache; a large one once another thread has copied it."""
        size = sum(tensor.byte_size for tensor in outputs)
        if size <= LARGE_BYTES:
            self._cache.insert(lookup.key, outputs)
        elif self._cache.may_hold(size):
            _then(self._keep_copies, lookup, _threads.submit(_copies, outputs))

    def _keep_copies(self, lookup: _Lookup, copies: Future[list[Tensor]]) -> None:
        if copies.exception() is None:
            self._cache.insert(lookup.key, copies.result())
        else:  # there is no memory for them; what a cache cannot keep is gone
            self._cache.counters.failures += 1

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
    """A question to the cache, and the request that waits for it.

    key     b"" until it is made
    reply   None while the request's handler has not returned
    """

    def __init__(self, cached: Cached, request: InferenceRequest, start_ns: int):
        self.request = request
        self.key = b""
        self.start_ns = start_ns
        self.answered = False
        self.outputs: list[Tensor] | None = None
        self.reply: Reply | None = None
        self._cached = cached

    def found(self, outputs: list[Tensor] | None) -> None:
        self.outputs = outputs
        self.answered = True
        if self.reply is not None:
            self._cached.proceed_later(self, self.reply)


def _then(done: Callable[[_Lookup, Future[Any]], None], lookup: _Lookup, work: Future[Any]) -> None:
    """Call done(lookup, work) on the event loop when `work` is done, unless the loop has ended."""
    loop = asyncio.get_running_loop()

    def tell(work: Future[Any]) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(done, lookup, work)

    work.add_done_callback(tell)


def _copies(outputs: list[Tensor]) -> list[Tensor]:
    return [Tensor(t.name, t.dtype, t.shape, raw=joined([t.raw])) for t in outputs]


def _also_on_host(output: RequestedOutput) -> RequestedOutput:
    if isinstance(output, DeviceOutput):
        return DeviceOutput(output.name, host=True)
    return output


def cache_key(request: InferenceRequest, signature: Signature, content: str = "") -> bytes:
    """What tells one answer from another: 32 bytes. Any thread.

    The id, the priority and the timeout of a request are no part of it.
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
