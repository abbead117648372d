"""What vLLM reports of its steps → families of metrics, and the status of an engine."""

import asyncio
from types import SimpleNamespace

import pytest
from backend_vllm.counts import Counts, token_bounds
from backend_vllm.metrics import ENTRIES, VllmMetrics, hide, show

# The families of Triton's vLLM backend.
OF_TRITON = {
    "vllm:prompt_tokens_total": "counter",
    "vllm:generation_tokens_total": "counter",
    "vllm:time_to_first_token_seconds": "histogram",
    "vllm:time_per_output_token_seconds": "histogram",
    "vllm:e2e_request_latency_seconds": "histogram",
    "vllm:request_prompt_tokens": "histogram",
    "vllm:request_generation_tokens": "histogram",
    "vllm:request_params_n": "histogram",
}


def scheduler(**fields):
    return SimpleNamespace(
        **{
            "num_running_reqs": 2,
            "num_waiting_reqs": 1,
            "num_skipped_waiting_reqs": 1,
            "kv_cache_usage": 0.25,
            "running_lora_adapters": {},
            "waiting_lora_adapters": {},
            "prefix_cache_stats": SimpleNamespace(queries=10, hits=4),
            **fields,
        }
    )


def step(finished=(), **fields):
    return SimpleNamespace(
        **{
            "num_prompt_tokens": 7,
            "num_generation_tokens": 3,
            "num_preempted_reqs": 1,
            "time_to_first_tokens_iter": [0.03],
            "inter_token_latencies_iter": [0.02, 0.2],
            "n_params_iter": [1],
            "finished_requests": finished,
            **fields,
        }
    )


def finished(reason):
    return SimpleNamespace(
        finish_reason=reason,
        e2e_latency=1.5,
        num_prompt_tokens=7,
        num_generation_tokens=3,
        queued_time=0.1,
        prefill_time=0.2,
        decode_time=1.2,
    )


@pytest.fixture
def counts():
    found = Counts(64)
    found.record(scheduler(), None)
    found.record(None, step())
    found.record(scheduler(kv_cache_usage=0.5), step([finished("stop"), finished("length")]))
    return found


def values(counts, name):
    return {
        each.suffix: each.value for each in counts.samples(name, {}) if each.suffix != "_bucket"
    }


def test_counters_add_up_and_gauges_are_those_of_the_last_step(counts):
    assert values(counts, "prompt_tokens_total") == {"": 14}
    assert values(counts, "generation_tokens_total") == {"": 6}
    assert values(counts, "num_preemptions_total") == {"": 2}
    assert values(counts, "prefix_cache_queries_total") == {"": 20}
    assert values(counts, "prefix_cache_hits_total") == {"": 8}
    assert values(counts, "num_requests_running") == {"": 2}
    assert values(counts, "num_requests_waiting") == {"": 2}
    assert values(counts, "kv_cache_usage_perc") == {"": 0.5}


def test_histograms_have_each_observation(counts):
    assert values(counts, "time_to_first_token_seconds") == {"_sum": 0.06, "_count": 2}
    assert values(counts, "e2e_request_latency_seconds") == {"_sum": 3.0, "_count": 2}
    assert values(counts, "request_prompt_tokens") == {"_sum": 14, "_count": 2}
    bounds = [
        each.labels["le"]
        for each in counts.samples("time_per_output_token_seconds", {})
        if each.suffix == "_bucket"
    ]
    assert bounds[0] == "0.01" and bounds[-1] == "+Inf"


def test_after_the_last_request_nothing_runs(counts):
    counts.record(scheduler(running_lora_adapters={"a": 1}), None)

    counts.rest()

    assert (
        values(counts, "num_requests_running") == values(counts, "num_requests_waiting") == {"": 0}
    )
    assert values(counts, "kv_cache_usage_perc") == {"": 0}
    assert counts.samples("lora_requests_info", {}) == []
    assert values(counts, "prompt_tokens_total") == {"": 14}


def test_finished_requests_are_counted_by_their_reason(counts):
    found = {
        each.labels["finished_reason"]: each.value
        for each in counts.samples("request_success_total", {"model": "m"})
    }

    assert found == {"stop": 1, "length": 1}


def test_adapters_are_named_while_they_run_or_wait(monkeypatch):
    counts = Counts(64, max_lora=4)
    monkeypatch.setattr("backend_vllm.counts.time.time", lambda: 1.75e9)
    counts.record(scheduler(), None)
    assert counts.samples("lora_requests_info", {}) == []

    counts.record(
        scheduler(running_lora_adapters={"b": 1, "a": 1}, waiting_lora_adapters={"c": 2}), None
    )

    (found,) = counts.samples("lora_requests_info", {"model": "m"})
    assert found.labels == {
        "model": "m",
        "running_lora_adapters": "a,b",
        "waiting_lora_adapters": "c",
        "max_lora": "4",
    }
    assert found.value == 1.75e9  # a gateway reads the newest series


def test_the_newest_step_of_all_workers_counts_for_adapters():
    found = {each.name: each for each in ENTRIES}["vllm:lora_requests_info"]

    assert found.together == "largest"


def test_bounds_of_tokens_grow_up_to_the_context():
    assert token_bounds(64) == (1, 2, 5, 10, 20, 50)
    assert token_bounds(100) == (1, 2, 5, 10, 20, 50, 100)


def test_the_families_of_tritons_backend_are_there_with_its_labels():
    found = {each.name: each for each in ENTRIES}

    assert {name: found[name].kind for name in OF_TRITON} == OF_TRITON
    assert all(found[name].labels == ("model", "version") for name in OF_TRITON)


def test_a_source_shows_the_models_of_its_server_only(counts):
    async def scraped(loop):
        own = asyncio.get_running_loop()
        model = SimpleNamespace(
            name="m",
            version=2,
            counts=counts,
            measured=SimpleNamespace(loop=loop or own),
            config=SimpleNamespace(metric_tags={"team": "a"}),
        )
        show(model)
        try:
            return VllmMetrics().families()
        finally:
            hide(model)
            hide(model)

    found = {each.name: each for each in asyncio.run(scraped(None))}

    assert set(OF_TRITON) <= set(found)
    (sample,) = found["vllm:prompt_tokens_total"].samples
    assert sample.labels == {"team": "a", "model": "m", "version": "2"}
    assert asyncio.run(scraped(object())) == ()
    assert asyncio.run(scraped_nothing()) == ()


async def scraped_nothing():
    return VllmMetrics().families()
