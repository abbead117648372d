"""The metrics of model versions."""

from types import SimpleNamespace

import pytest

from core.caches import LocalCache
from core.config import ModelConfig
from core.config.messages import ModelInstanceGroup
from core.control.metrics.collect import MetricCollector
from core.control.metrics.versions import VersionLabels
from core.control.metrics.watch import Watch
from core.options import Options
from core.system.account import MemoryAccount
from core.telemetry.metrics.detailed import statistics_of
from core.telemetry.metrics.settings import MetricSettings
from core.telemetry.registry import registry
from core.telemetry.statistics import Statistics


def version(name="m", number=1, state="READY", tags=(), statistics=None, namespace=None, **chain):
    config = ModelConfig()
    config.metric_tags.update(dict(tags))
    about = {
        "pending": 0,
        "pending_by_priority": {},
        "in_flight": 0,
        "instances": 1,
        "ready": True,
        **chain,
    }
    return SimpleNamespace(
        name=name,
        namespace=namespace,
        version=number,
        state=state,
        wanted=True,
        config=config,
        statistics=statistics or Statistics(),
        chain=SimpleNamespace(**about),
        load_seconds=1.5,
    )


def collected(*versions, results=None, uuids=(), **options):
    options = Options.defaults(**options)
    watch = Watch(options)
    watch.labels = VersionLabels(dict(enumerate(uuids)).get)
    manager = SimpleNamespace(
        versions=lambda: versions,
        results=lambda: [(None, name, counts) for name, counts in (results or {}).items()],
    )
    cache = LocalCache(100) if options.cache_config else None
    collector = MetricCollector(options, manager, watch, MemoryAccount.of(options), cache)
    return {family.name: family for family in collector.collect()}


def values(family):
    return [(dict(sample.labels), sample.value) for sample in family.samples]


def test_requests_rows_and_executions_are_counted_by_version():
    first, second = version(number=1), version(number=2)
    first.statistics.executed(3, 1, 1, 1)
    first.statistics.succeeded(3, 10, 1, 1, 1, 1)

    found = collected(first, second)

    one, two = {"model": "m", "version": "1"}, {"model": "m", "version": "2"}
    assert values(found["nv_inference_request_success"]) == [(one, 1), (two, 0)]
    assert values(found["nv_inference_count"]) == [(one, 3), (two, 0)]
    assert values(found["nv_inference_exec_count"]) == [(one, 1), (two, 0)]


def test_durations_are_whole_microseconds():
    each = version()
    each.statistics.succeeded(1, 10_999, 2_000, 3_000, 4_000, 5_000)

    found = collected(each)

    assert [
        found[f"nv_inference_{name}_duration_us"].samples[0].value
        for name in ("request", "queue", "compute_input", "compute_infer", "compute_output")
    ] == [10, 2, 3, 4, 5]


def test_failures_have_all_their_reasons():
    each = version()
    each.statistics.failed("REJECTED", 5_000)

    found = collected(each)

    assert {
        sample.labels["reason"]: sample.value
        for sample in found["nv_inference_request_failure"].samples
    } == {"REJECTED": 1, "CANCELED": 0, "BACKEND": 0, "OTHER": 0, "DEADLINE": 0}
    assert found["nv_inference_request_duration_us"].samples[0].value == 0


def test_waiting_requests_and_load_time_are_gauges():
    found = collected(version(pending=4))

    assert found["nv_inference_pending_request_count"].kind == "gauge"
    assert found["nv_inference_pending_request_count"].samples[0].value == 4
    assert found["nv_model_load_duration_secs"].samples[0].value == 1.5


def test_tags_of_a_model_are_labels_with_an_underscore():
    found = collected(version(tags={"team": "x"}))

    assert found["nv_inference_count"].samples[0].labels == {
        "_team": "x",
        "model": "m",
        "version": "1",
    }


@pytest.mark.parametrize("state", ["LOADING", "UNLOADING", "UNAVAILABLE"])
def test_a_version_that_does_not_serve_has_no_samples(state):
    assert collected(version(state=state))["nv_inference_count"].samples == []


def test_latencies_can_be_turned_off():
    found = collected(version(), metrics_config={"counter_latencies": "false"})

    assert not [name for name in found if name.endswith("_us") and found[name].samples]
    assert "nv_inference_count" in found


def test_a_model_with_the_response_cache_counts_hits_and_misses():
    each = version()
    each.config.response_cache.enable = True
    each.statistics.cache_hit.add(7_000)
    each.statistics.cache_miss.add(9_000)

    found = collected(each, version("other"), cache_config={"local": {"size": "1"}})

    for name, value in (
        ("nv_cache_num_hits_per_model", 1),
        ("nv_cache_num_misses_per_model", 1),
        ("nv_cache_hit_duration_per_model", 7),
        ("nv_cache_miss_duration_per_model", 9),
    ):
        assert values(found[name]) == [({"model": "m", "version": "1"}, value)]


def test_metrics_of_the_machine_can_be_turned_off():
    assert "nv_cpu_memory_total_bytes" not in collected(allow_cpu_metrics=False)


def test_there_is_no_pool_of_pinned_memory():
    found = collected(pinned_memory_pool_byte_size=64)

    assert found["nv_pinned_memory_pool_total_bytes"].samples[0].value == 0
    assert found["nv_pinned_memory_pool_used_bytes"].samples[0].value == 0


def test_a_models_own_families_come_too():
    family = registry.family("own_items", "Items", "counter")
    try:
        family.metric().increment(2)
        assert collected()["own_items"].samples[0].value == 2
    finally:
        registry.remove(family)


def detailed(**switches):
    config = ModelConfig()
    settings = MetricSettings.of({name: "true" for name in switches})
    statistics = statistics_of(settings, config)
    statistics.succeeded(1, 30_000_000, 600_000, 50_000, 26_000_000, 700_000)
    return statistics


def test_latencies_are_histograms_where_they_are_counted_so():
    found = collected(version(statistics=detailed(histogram_latencies=True)), version("plain"))

    samples = found["nv_inference_request_duration_histogram_us"].samples
    labels = {"model": "m", "version": "1"}
    assert [(each.suffix, each.labels.get("le"), each.value) for each in samples] == [
        ("_bucket", "1000", 0),
        ("_bucket", "5000", 0),
        ("_bucket", "25000", 0),
        ("_bucket", "50000", 1),
        ("_bucket", "100000", 1),
        ("_bucket", "+Inf", 1),
        ("_sum", None, 30_000),
        ("_count", None, 1),
    ]
    assert all(labels.items() <= each.labels.items() for each in samples)
    first = found["nv_inference_first_response_histogram_ms"].samples
    assert [each.value for each in first] == [1, 1, 1, 1, 1, 30, 1]


def test_latencies_are_summaries_where_they_are_counted_so():
    found = collected(
        version(statistics=detailed(summary_latencies=True)),
        metrics_config={"summary_latencies": "true", "summary_quantiles": "0.5:0.1,1:0"},
    )

    samples = found["nv_inference_queue_summary_us"].samples
    assert [(each.suffix, each.labels.get("quantile"), each.value) for each in samples] == [
        ("_count", None, 1),
        ("_sum", None, 600),
        ("", "0.5", 600),
        ("", "1", 600),
    ]


def test_summaries_of_the_cache_are_of_models_that_use_it():
    statistics = detailed(summary_latencies=True)
    statistics.hit(7_000, 1_000, 9_000)
    each = version(statistics=statistics)
    each.config.response_cache.enable = True

    found = collected(
        each,
        version("other", statistics=detailed(summary_latencies=True)),
        cache_config={"local": {"size": "1"}},
    )

    (summary,) = found["nv_cache_hit_summary_per_model"].summaries
    assert (summary.labels, summary.count, summary.total_us) == (
        {"model": "m", "version": "1"},
        1,
        7,
    )


def test_sizes_of_batches_are_counted_by_powers_of_two():
    each = version()
    each.config.max_batch_size = 6
    for rows in (1, 3, 6, 6):
        each.statistics.executed(rows, 1, 1, 1)

    samples = collected(each)["core_inference_batch_size"].samples

    assert [(each.labels.get("le"), each.value) for each in samples] == [
        ("1", 1), ("2", 1), ("4", 2), ("8", 4), ("+Inf", 4), (None, 16), (None, 4),
    ]  # fmt: skip


def test_sizes_of_batches_have_the_buckets_that_a_model_chooses():
    each = version()
    each.config.max_batch_size = 6
    control = each.config.model_metrics.metric_control.add()
    control.metric_identifier.family = "core_inference_batch_size"
    control.histogram_options.buckets.append(5)

    samples = collected(each)["core_inference_batch_size"].samples

    assert [each.labels.get("le") for each in samples] == ["5", "+Inf", None, None]


def test_pending_requests_are_exposed_by_priority():
    found = collected(version(pending=3, pending_by_priority={1: 1, 2: 2}, in_flight=5))

    assert values(found["core_inference_pending_by_priority"]) == [
        ({"model": "m", "version": "1", "priority": "1"}, 1),
        ({"model": "m", "version": "1", "priority": "2"}, 2),
    ]
    assert found["core_inference_in_flight"].samples[0].value == 5


def test_the_wait_estimate_follows_execution_times():
    busy = version(pending=6, instances=2)
    busy.statistics.executed(4, 0, 2_000_000_000, 0)
    for _ in range(4):
        busy.statistics.succeeded(1, 1, 1, 1, 1, 1)

    found = collected(busy, version("new", pending=6))

    # Half a second of an instance for each request, six of them wait, two instances.
    assert [each.value for each in found["core_inference_wait_estimate_seconds"].samples] == [
        1.5,
        0,
    ]


def test_a_version_that_should_serve_and_does_not_is_not_ready():
    gone = version("gone", state="UNAVAILABLE")
    gone.wanted = False

    found = collected(
        version(),
        version("failed", state="UNAVAILABLE"),
        version("broken", ready=False),
        gone,
    )

    assert {each.labels["model"]: each.value for each in found["core_model_ready"].samples} == {
        "m": 1,
        "failed": 0,
        "broken": 0,
    }


def test_loads_and_unloads_have_their_results():
    results = {("loads", "success"): 2, ("loads", "failure"): 1, ("unloads", "success"): 1}

    found = collected(results={"m": results})

    assert values(found["core_model_loads"]) == [
        ({"model": "m", "result": "success"}, 2),
        ({"model": "m", "result": "failure"}, 1),
    ]
    assert values(found["core_model_unloads"]) == [({"model": "m", "result": "success"}, 1)]


def test_models_of_a_namespace_have_its_label():
    found = collected(version(namespace="/models/a"))

    names = {"namespace": "/models/a", "model": "m", "version": "1"}
    assert values(found["nv_inference_count"]) == [(names, 0)]


def test_the_local_cache_exposes_tritons_metrics():
    found = collected(cache_config={"local": {"size": "100"}})

    assert {name: found[name].kind for name in found if name.startswith("nv_cache_")} == {
        **dict.fromkeys(
            (f"nv_cache_{name}" for name in (
                "util", "num_entries", "num_hits", "num_misses", "num_lookups", "num_evictions",
                "lookup_duration", "insertion_duration",
            )), "gauge",
        ),
        **dict.fromkeys(
            (f"nv_cache_{name}_per_model" for name in (
                "num_hits", "hit_duration", "num_misses", "miss_duration",
            )), "counter",
        ),
    }  # fmt: skip


def on_gpus(*numbers, kind=ModelInstanceGroup.KIND_GPU):
    each = version()
    each.config.instance_group.add(kind=kind, gpus=numbers)
    return each


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        (on_gpus(1), {"gpu_uuid": "GPU-b"}),
        (on_gpus(0, 1), {}),
        (on_gpus(7), {}),
        (on_gpus(kind=ModelInstanceGroup.KIND_CPU), {}),
        (version(), {}),
    ],
)
def test_values_of_one_gpu_have_its_uuid(each, expected):
    found = collected(each, uuids=("GPU-a", "GPU-b"))

    labels = {"model": "m", "version": "1"}
    assert found["nv_inference_count"].samples[0].labels == {**labels, **expected}
    assert found["nv_inference_pending_request_count"].samples[0].labels == labels
