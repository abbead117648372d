"""LoadReports: what a report has, in which form, and how old it may be."""

import json

import pytest

from core.telemetry.families import Family, Sample
from frontends.shared.load_reports import LoadReports


class Machine:
    """A server whose metrics and clock the test sets."""

    def __init__(self):
        self.values = {}
        self.now_s = 100.0
        self.scrapes = 0
        self.reports = LoadReports(self.scrape, lambda: self.now_s)

    def scrape(self):
        self.scrapes += 1
        return [
            Family(name, "gauge", "", [Sample(labels, value) for labels, value in samples])
            for name, samples in self.values.items()
        ]

    def json(self):
        kind, _, text = self.reports.text("json").partition(" ")
        assert kind == "JSON"
        return json.loads(text)


@pytest.fixture
def machine():
    return Machine()


def blocks(**values):
    return [({"kv_cache_block_type": name}, value) for name, value in values.items()]


def test_use_and_size_of_the_cache_come_first_and_look_like_tritons(machine):
    machine.values["nv_trt_llm_kv_cache_block_metrics"] = blocks(used=3, max=6, tokens_per=32)

    assert machine.reports.text("json").startswith(
        'JSON {"named_metrics":{"kv_cache_utilization":0.5,"max_token_capacity":192,'
    )
    assert machine.reports.text("text").startswith(
        "TEXT named_metrics.kv_cache_utilization=0.500000, named_metrics.max_token_capacity=192, "
    )


def test_a_cache_without_blocks_is_not_used(machine):
    machine.values["nv_trt_llm_kv_cache_block_metrics"] = blocks(used=0, max=0, tokens_per=32)

    assert machine.json()["named_metrics"]["kv_cache_utilization"] == 0


def test_engines_report_the_fullest_cache_and_the_room_of_all(machine):
    machine.values["core_generation_cache_use"] = [({"model": "a"}, 0.25), ({"model": "b"}, 0.75)]
    machine.values["core_generation_cache_tokens"] = [({"model": "a"}, 10), ({"model": "b"}, 20)]

    named = machine.json()["named_metrics"]

    assert (named["kv_cache_utilization"], named["max_token_capacity"]) == (0.75, 30)


def test_waiting_and_running_requests_are_added_up(machine):
    machine.values["core_inference_in_flight"] = [({"model": "a"}, 3), ({"model": "b"}, 4)]
    machine.values["nv_inference_pending_request_count"] = [({"model": "a"}, 2)]

    assert machine.json() == {"named_metrics": {"requests_in_flight": 7, "requests_pending": 2}}


def test_processor_and_memory_are_shares(machine):
    machine.values["nv_cpu_utilization"] = [({}, 0.5)]
    machine.values["nv_cpu_memory_total_bytes"] = [({}, 1000)]
    machine.values["nv_cpu_memory_used_bytes"] = [({}, 250)]

    found = machine.json()

    assert (found["cpu_utilization"], found["mem_utilization"]) == (0.5, 0.25)


def test_rates_are_those_since_the_report_before(machine):
    machine.values["nv_inference_request_success"] = [({"model": "a"}, 10)]
    machine.values["nv_inference_request_failure"] = [({"model": "a"}, 1)]
    assert "rps_fractional" not in machine.json()

    machine.now_s += 2
    machine.values["nv_inference_request_success"] = [({"model": "a"}, 14)]
    machine.values["nv_inference_request_failure"] = [({"model": "a"}, 2)]

    found = machine.json()
    assert (found["rps_fractional"], found["eps"]) == (2.5, 0.5)


def test_a_model_that_was_loaded_again_gives_no_negative_rate(machine):
    machine.values["nv_inference_request_success"] = [({"model": "a"}, 10)]
    machine.json()

    machine.now_s += 2
    machine.values["nv_inference_request_success"] = [({"model": "a"}, 1)]

    assert machine.json()["rps_fractional"] == 0


def test_a_report_is_repeated_for_a_quarter_of_a_second(machine):
    machine.reports.text("json")
    machine.now_s += 0.24
    machine.reports.text("text")
    assert machine.scrapes == 1

    machine.now_s += 0.02
    machine.reports.text("json")
    assert machine.scrapes == 2


@pytest.mark.parametrize("form", ["", "JSON", "xml", b"json", None])
def test_an_unknown_format_has_no_report_and_costs_no_scrape(machine, form):
    assert machine.reports.text(form) is None
    assert machine.scrapes == 0
