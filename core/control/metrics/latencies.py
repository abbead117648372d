"""Histograms and summaries of the latencies and batch sizes of model versions, from their statistics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from core.lifecycle import ModelVersion
from core.native.distribution import Histogram
from core.telemetry.families import Family, Sample, Summary, histogram_samples
from core.telemetry.metrics.catalog import family
from core.telemetry.metrics.detailed import (
    BATCH_SIZE,
    FIRST_RESPONSE,
    HISTOGRAMS,
    DetailedStatistics,
    buckets_of,
)

Labelled = Sequence[tuple[Mapping[str, str], ModelVersion]]


def histograms(labelled: Labelled) -> list[Family]:
    """Return every family of histograms, with samples of each version whose load enabled histograms."""
    samples: dict[str, list[Sample]] = {name: [] for name in (FIRST_RESPONSE, *HISTOGRAMS)}
    for labels, version in labelled:
        statistics = version.statistics
        if not isinstance(statistics, DetailedStatistics):
            continue
        if statistics.first_response is not None:
            samples[FIRST_RESPONSE] += _samples(labels, statistics.first_response)
        phases = statistics.phases()
        for name, latency in HISTOGRAMS.items():
            histogram = phases[latency].histogram
            if histogram is not None:
                samples[name] += _samples(labels, histogram)
    return [family(name, found) for name, found in samples.items()]


def _samples(labels: Mapping[str, str], histogram: Histogram) -> list[Sample]:
    total = histogram.sum_ns // histogram.unit_ns
    return histogram_samples(labels, histogram.bounds, histogram.counts(), total)


def summaries(labelled: Labelled, cached: Labelled, quantiles: tuple[float, ...]) -> list[Family]:
    """Return the summaries of each version that has them; those of the cache only for `cached`.

    cached   the versions that use the response cache
    """
    keep_answers = {id(version) for _, version in cached}
    found: dict[str, list[Summary]] = {}
    for labels, version in labelled:
        statistics = version.statistics
        if not isinstance(statistics, DetailedStatistics):
            continue
        for latency, phase in statistics.phases().items():
            spread = phase.spread
            if spread is None:
                continue
            name = f"nv_inference_{latency}_summary_us"
            if latency.startswith("cache_"):
                if id(version) not in keep_answers:
                    continue
                name = f"nv_{latency}_summary_per_model"
            found.setdefault(name, []).append(
                Summary(labels, quantiles, spread.count, spread.sum_ns // 1000, *spread.recent())
            )
    return [family(name, summaries=each) for name, each in found.items()]


def batch_sizes(labelled: Labelled) -> Family:
    """Return the histogram of rows per execution of versions that batch; default bounds are powers of two."""
    samples: list[Sample] = []
    for labels, version in labelled:
        most = version.config.max_batch_size
        if most <= 1:
            continue
        bounds = buckets_of(version.config).get(BATCH_SIZE) or tuple(
            float(2**power) for power in range((most - 1).bit_length() + 1)
        )
        counts, total = [0] * (len(bounds) + 1), 0
        for rows, size in version.statistics.batch_sizes.items():
            counts[bisect_left(bounds, rows)] += size.compute_infer.count
            total += rows * size.compute_infer.count
        samples += histogram_samples(labels, bounds, counts, total)
    return family(BATCH_SIZE, samples)


def wait_estimate_s(version: ModelVersion) -> float:
    """Estimate the seconds that instances need for pending requests, by past ones; 0 if either is missing."""
    chain, statistics = version.chain, version.statistics
    requests = (
        statistics.success.count - statistics.cache_hit.count + statistics.failures["BACKEND"]
    )
    if not chain.pending or requests <= 0:
        return 0.0
    busy_ns = sum(
        size.compute_input.ns + size.compute_infer.ns + size.compute_output.ns
        for size in statistics.batch_sizes.values()
    )
    return chain.pending * busy_ns / requests / max(1, chain.instances) / 1e9
