"""What the metrics say of model versions."""

from types import SimpleNamespace

import pytest

from core.caches import LocalCache
from core.config import ModelConfig
from core.options import Options
from core.telemetry.metrics.collect import collect
from core.telemetry.metrics.watch import Watch
from core.telemetry.registry import registry
from core.telemetry.statistics import Statistics


def version(name="m", number=1, state="READY", tags=(), statistics=None, **chain):
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
    watch.gpus._uuids = uuids
    server = SimpleNamespace(
        options=options,
        versions=lambda: versions,
        results=lambda: results or {},
        cache=LocalCache(100) if options.cache_config else None,
        watch=watch,
    )
    return {family.name: family for family in collect(server)}


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
    } == {"REJECTED": 1, "CANCELED": 0, "BACKEND": 0, "OTHER": 0}
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
