"""Metrics of engines: time to the first token, time per token, tokens, and what runs.

GenerationRun ─► Measurements of a model version ─► [GenerationMetrics] ─► families of a scrape
"""

from __future__ import annotations

import asyncio
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from core.telemetry.families import Family, KindOfMetric, Sample, histogram_samples
from core.telemetry.metrics.catalog import VERSION, Entry
from core.telemetry.metrics.source import MetricSource

if TYPE_CHECKING:
    from core_generate.model import EngineModel

# Upper bounds in seconds.
FIRST_TOKEN_S = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0),
    *(40.0, 80.0),
)
PER_TOKEN_S = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15),
    *(0.2, 0.3, 0.5, 1.0, 2.5),
)

_FIRST = Entry(
    "core_generation_time_to_first_token_seconds",
    "histogram",
    "Time from the admission of a request to its first token, in seconds",
    VERSION,
)
_EACH = Entry(
    "core_generation_time_per_token_seconds",
    "histogram",
    "Mean time between the tokens of a request, in seconds",
    VERSION,
)
_COUNTERS = {
    "prompt_tokens": "Tokens of prompts and texts that were read, when their requests end",
    "cached_tokens": "Tokens of prompts that were not computed again, because a cache had them",
    "tokens": "Tokens generated, when their requests end",
}
_GAUGES = {
    "running": "Generations that the engine computes",
    "waiting": "Generations that the engine has accepted and does not compute yet; "
    "nv_inference_pending_request_count has those that wait for it",
}
_CACHE_USE = Entry(
    "core_generation_cache_use",
    "gauge",
    "Used part of the memory for contexts [0.0 - 1.0]",
    VERSION,
    together="largest",
)
_CACHE_TOKENS = Entry(
    "core_generation_cache_tokens",
    "gauge",
    "Tokens that the memory for contexts holds; absent if the engine does not report it",
    VERSION,
)


def _entries(kind: KindOfMetric, texts: dict[str, str]) -> dict[str, Entry]:
    return {
        name: Entry(f"core_generation_{name}", kind, text, VERSION) for name, text in texts.items()
    }


COUNTERS = _entries("counter", _COUNTERS)
GAUGES = _entries("gauge", _GAUGES)


class Histogram:
    """Counts observations by upper bounds, and adds them up, for one histogram. Event loop only."""

    def __init__(self, bounds: tuple[float, ...]):
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def samples(self, labels: dict[str, str]) -> list[Sample]:
        return histogram_samples(labels, self._bounds, self._counts, self._total)


class Measurements:
    """Counts and times of one model version, until `close`. Event loop only, unless stated.

    loop      event loop of the server; None until the model has an instance
    running   requests of the task "generate" that have begun
    since_s   time of the load, in seconds since 1970
    """

    loop: asyncio.AbstractEventLoop | None = None

    def __init__(self, model: EngineModel):
        self.model = model
        self.since_s = time.time()
        self.running = 0
        self.first = Histogram(FIRST_TOKEN_S)
        self.each = Histogram(PER_TOKEN_S)
        self.prompt_tokens = self.cached_tokens = self.tokens = 0
        _LOADED[id(self)] = self

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of the model version."""
        tags = self.model.config.metric_tags
        return {**tags, "model": self.model.name, "version": str(self.model.version)}

    def close(self) -> None:
        """Take the model version out of the metrics of its server. Any thread; a second call does nothing."""
        _LOADED.pop(id(self), None)

    def ended(
        self,
        arrival_ns: int,
        first_ns: int,
        last_ns: int,
        prompt_tokens: int,
        cached_tokens: int,
        tokens: int,
    ) -> None:
        """Count a request of the task "generate" that has ended, and its tokens.

        Observes the time to its first token, if it had one, and the mean time per token, if it had several.
        arrival_ns          time.monotonic_ns() of its admission
        first_ns, last_ns   time.monotonic_ns() of its first and last token; 0 for none
        """
        self.running -= 1
        self.prompt_tokens += prompt_tokens
        self.cached_tokens += cached_tokens
        self.tokens += tokens
        if first_ns:
            self.first.observe(max(0, first_ns - arrival_ns) / 1e9)
        if tokens > 1:
            self.each.observe((last_ns - first_ns) / (tokens - 1) / 1e9)

    def read(self, tokens: int) -> None:
        """Add `tokens`, the number of those read for embeddings or scores, to `prompt_tokens`. Any thread."""
        with _READING:
            self.prompt_tokens += tokens


_READING = threading.Lock()
_LOADED: dict[int, Measurements] = {}  # by id


class GenerationMetrics(MetricSource):
    """The metrics of all loaded engines of the server on whose event loop `families` is called."""

    catalog = {
        "Generation (plugin `core-generate`)": [
            _FIRST,
            _EACH,
            *COUNTERS.values(),
            *GAUGES.values(),
            _CACHE_USE,
            _CACHE_TOKENS,
        ]
    }

    def families(self) -> Sequence[Family]:
        loaded = loaded_here()
        if not loaded:
            return ()
        return list(_families([(each, each.labels) for each in loaded]))


def loaded_here() -> list[Measurements]:
    """Return those of all loaded engines of the server on whose event loop this is called, by name."""
    loop = asyncio.get_running_loop()  # that of one server; others may be in this process
    loaded = [each for each in list(_LOADED.values()) if each.loop is loop]
    return sorted(loaded, key=lambda each: (each.model.name, each.model.version))


def _families(found: list[tuple[Measurements, dict[str, str]]]) -> Iterable[Family]:
    yield _FIRST.family(each for one, labels in found for each in one.first.samples(labels))
    yield _EACH.family(each for one, labels in found for each in one.each.samples(labels))
    for name, entry in COUNTERS.items():
        yield entry.family(Sample(labels, getattr(one, name)) for one, labels in found)
    states = [(labels, one, one.model.engine.status()) for one, labels in found]
    yield GAUGES["running"].family(
        # An engine without a status runs what it has begun.
        Sample(labels, state.running or max(0, one.running - state.waiting))
        for labels, one, state in states
    )
    yield GAUGES["waiting"].family(Sample(labels, state.waiting) for labels, _, state in states)
    yield _CACHE_USE.family(Sample(labels, state.cache_use) for labels, _, state in states)
    yield _CACHE_TOKENS.family(
        Sample(labels, state.cache_tokens) for labels, _, state in states if state.cache_tokens
    )
