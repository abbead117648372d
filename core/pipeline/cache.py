"""The response cache: equal requests to one model version get the answer of the first.

admit ─► [Cached] ─► batcher.  Only for models with `response_cache { enable: true }`, on servers with
--cache-config. Unlike the original's, the key holds everything that may change an answer: shapes,
parameters and wanted outputs too.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable

from core.config import Signature
from core.errors import CoreError, invalid
from core.pipeline.intake import Handler
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply
from core.telemetry.statistics import Statistics
from core.tensor import Tensor

_OVERHEAD = 512  # bytes that an entry takes beside its tensors, about


class ResponseCache:
    """Answers by key, in `size` bytes; the one that was not used for longest leaves first.

    Loop thread only. Counters: lookups, hits, insertions, evictions; `used` bytes.
    """

    def __init__(self, size: int):
        self.size = size
        self.used = 0
        self.lookups = 0
        self.hits = 0
        self.insertions = 0
        self.evictions = 0
        self._entries: OrderedDict[bytes, tuple[list[Tensor], int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def lookup(self, key: bytes) -> list[Tensor] | None:
        """The outputs under a key; they count as used now."""
        self.lookups += 1
        if (entry := self._entries.get(key)) is None:
            return None
        self.hits += 1
        self._entries.move_to_end(key)
        return entry[0]

    def insert(self, key: bytes, outputs: list[Tensor]) -> None:
        """Keep a copy of `outputs`, unless it is larger than the cache or the key is there already."""
        size = _OVERHEAD + sum(tensor.byte_size for tensor in outputs)
        if size > self.size or key in self._entries:
            return
        while self.used + size > self.size:
            _, (_, freed) = self._entries.popitem(last=False)
            self.used -= freed
            self.evictions += 1
        # Copies: an output may be a row of a large batch, which must not live on for its sake.
        copies = [Tensor(t.name, t.dtype, t.shape, raw=bytes(t.raw)) for t in outputs]
        self._entries[key] = (copies, size)
        self.used += size
        self.insertions += 1


class Cached:
    """A layer before a model's scheduler. Loop thread only."""

    def __init__(
        self,
        inner: Handler,
        cache: ResponseCache,
        signature: Signature,
        statistics: Statistics,
        on_final: Callable[[], None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ):
        self._inner = inner
        self._cache = cache
        self._signature = signature
        self._statistics = statistics
        self._on_final = on_final
        self._clock_ns = clock_ns

    def __call__(self, request: InferenceRequest) -> Reply:
        if request.shared:  # its inputs may be others by the time that the model sees them
            return self._inner(request)
        start_ns = self._clock_ns()
        key = cache_key(request, self._signature)
        found = self._cache.lookup(key)
        lookup_ns = self._clock_ns() - start_ns
        if found is not None:
            if request.trace is not None:
                request.trace.span("CACHE_HIT_LOOKUP", start_ns, start_ns + lookup_ns)
            return self._hit(request, found, lookup_ns)
        inner = self._inner(request)
        outer = Reply(request)

        def arrived(item: InferenceResponse | CoreError | None, final: bool) -> None:
            insert_ns = 0
            if isinstance(item, InferenceResponse):
                before_ns = self._clock_ns()
                self._cache.insert(key, item.outputs)
                insert_ns = self._clock_ns() - before_ns
            self._statistics.cache_miss.add(lookup_ns + insert_ns)
            outer.send(item, final)

        inner.listen(arrived)
        return outer

    def _hit(self, request: InferenceRequest, outputs: list[Tensor], lookup_ns: int) -> Reply:
        reply = Reply(request)
        self._statistics.cache_hit.add(lookup_ns)
        self._statistics.success.add(self._clock_ns() - request.arrival_ns)
        reply.send(
            InferenceResponse(
                self._signature.name, self._signature.version, list(outputs), id=request.id
            )
        )
        self._on_final()
        return reply


def cache_key(request: InferenceRequest, signature: Signature) -> bytes:
    """What tells one answer from another: 32 bytes.

    The id, the priority and the timeout of a request are no part of it.
    """
    digest = hashlib.blake2b(digest_size=32)
    head = (
        signature.name,
        signature.version,
        [(output.name, output.class_count) for output in request.outputs],
        sorted(request.parameters.items()),
        sorted((t.name, t.dtype.name, t.shape) for t in request.inputs.values()),
    )
    digest.update(repr(head).encode())
    for name in sorted(request.inputs):
        digest.update(request.inputs[name].raw)
    return digest.digest()


def cache_of(config: dict[str, dict[str, str]]) -> ResponseCache | None:
    """The cache that --cache-config asks for, None if it does not.

    Raises CoreError(INVALID) for a cache or a setting that there is not.
    """
    if not config:
        return None
    (name, settings), *_ = config.items()
    if name != "local":
        raise invalid(
            f"no cache named '{name}' (installed: local); try --cache-config=local,size=N"
        )
    if not settings.get("size", "").isdigit() or set(settings) != {"size"}:
        raise invalid(
            f"the local cache takes size=<bytes>, found {settings}; try --cache-config=local,size=N"
        )
    return ResponseCache(int(settings["size"]))
