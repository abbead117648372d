"""The exposition of a server with all metric families."""

import numpy as np
import pytest

import core
from core.control import ProcessResults, merging
from core.control.health import families_of_workers
from core.telemetry.families import Sample, histogram_samples
from core.telemetry.metrics.catalog import CATALOG, Entry
from frontends.metrics.sources.loop_lag import BUCKETS_S
from frontends.metrics.text import render
from frontends.pages import metric_parts

X = np.ones((1, 4), np.float32)


@pytest.fixture(scope="session")
def told():
    """Families of a server with models that batch, stream, have priorities, use the cache and fail."""
    config = {
        "dynamic_batching": {"priority_levels": 2, "default_priority_level": 1},
        "response_cache": {"enable": True},
        "metric_tags": {"team": "a b"},
    }
    settings = {"histogram_latencies": "true", "summary_latencies": "true"}
    with core.Server(metrics_config=settings, cache_config={"local": {"size": "65536"}}) as server:
        shape = {"inputs": {"x": ("FP32", [4])}, "outputs": {"y": ("FP32", [4])}}
        server.bind("double", lambda x: 2 * x, batching=True, config=config, **shape)
        server.bind("stream", lambda x: iter([{"y": x}, {"y": x}]), **shape)
        for _ in range(2):
            server.infer("double", {"x": X})
        return server.metrics()


@pytest.fixture(scope="session")
def catalog() -> dict[str, Entry]:
    """Name → entry of every family of core and of the installed plugins."""
    return {entry.name: entry for entries in metric_parts().values() for entry in entries}


@pytest.fixture(scope="session")
def families(told, catalog):
    """The same of two workers, with what plugins show only in use, and a loop that is looked at."""
    lag = histogram_samples({"worker": "1"}, BUCKETS_S, [3, 0, 1, 0, 0, 0, 0], 0.02)
    told = [each for each in told if each.samples]
    told.append(catalog["core_event_loop_lag_seconds"].family(lag))
    seen = {each.name for each in told}
    absent = [
        entry.family(_samples(entry))
        for name, entry in catalog.items()
        if name not in seen and name not in CATALOG
    ]
    values = merging.families_as_values([*told, *absent])
    merged = merging.families([merging.families_of_values(values) for _ in range(2)])
    return [
        *merged,
        *families_of_workers(ProcessResults(1, {1: [], 2: []}, {}, restarts={1: 0, 2: 1})),
    ]


def _samples(entry):
    labels = dict.fromkeys(entry.labels, "1")
    if entry.kind == "histogram":
        return histogram_samples(labels, BUCKETS_S, [3, 0, 1, 0, 0, 0, 0], 0.02)
    return [Sample(labels, 1)]


@pytest.fixture(scope="session")
def exposition(families):
    """Return the text that a scraper gets."""
    return render(families)
