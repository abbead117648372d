"""The combined counts of several workers equal those of a single one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.control import merging
from core.native.distribution import QuantileSketch
from core.telemetry.families import Family, Sample, Summary
from core.telemetry.metrics.catalog import family
from core.telemetry.registry import Registry
from core.telemetry.statistics import Statistics

NS = st.integers(0, 10**6)
# What happens to a request: which worker gets it, rows, and its times.
REQUESTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 4), st.booleans(), NS, NS, NS), max_size=30
)


def count(statistics, rows, succeeds, queue_ns, input_ns, infer_ns):
    statistics.executed(rows, input_ns, infer_ns, 7)
    if succeeds:
        total_ns = queue_ns + input_ns + infer_ns + 7
        statistics.succeeded(rows, total_ns, queue_ns, input_ns, infer_ns, 7)
    else:
        statistics.failed("BACKEND", queue_ns)


def entry(statistics, name="m", version="1"):
    return {"name": name, "version": version, **statistics.as_dict(), "memory_usage": []}


class TestStatistics:
    @given(REQUESTS)
    def test_the_sum_over_workers_is_that_over_requests(self, requests):
        workers, one = [Statistics() for _ in range(3)], Statistics()
        for worker, *request in requests:
            count(workers[worker], *request)
            count(one, *request)
        one.last_inference_ms = max(each.last_inference_ms for each in workers)

        merged = merging.statistics([[entry(each)] for each in workers])

        assert merged == [entry(one)]

    def test_a_version_of_only_one_worker_is_listed(self):
        merged = merging.statistics(
            [[entry(Statistics(), version="10")], [entry(Statistics(), version="9")]]
        )

        assert [each["version"] for each in merged] == ["9", "10"]

    def test_a_single_answer_is_unchanged(self):
        counted = Statistics()
        count(counted, 2, True, 1, 2, 3)

        assert merging.statistics([[entry(counted)]]) == [entry(counted)]

    def test_memory_adds_up_for_each_device(self):
        first, second = entry(Statistics()), entry(Statistics())
        first["memory_usage"] = [{"type": "GPU", "id": 0, "byte_size": 5}]
        second["memory_usage"] = [
            {"type": "CPU", "id": 0, "byte_size": 1},
            {"type": "GPU", "id": 0, "byte_size": 6},
        ]

        (merged,) = merging.statistics([[first], [second]])

        assert merged["memory_usage"] == [
            {"type": "CPU", "id": 0, "byte_size": 1},
            {"type": "GPU", "id": 0, "byte_size": 11},
        ]


def summary(spread):
    quantiles = (0.1, 0.5, 0.999)
    parts = Summary(
        {"model": "m"}, quantiles, spread.count, spread.sum_ns // 1000, *spread.recent()
    )
    return family("nv_inference_queue_summary_us", summaries=[parts])


def told(family):
    return {
        each.suffix.strip("_") or each.labels["quantile"]: each.value for each in family.samples
    }


def values(families):
    return {
        (family.name, sample.suffix, *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


class TestMetrics:
    @given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.integers(0, 50))))
    def test_counters_and_histograms_add_up(self, events):
        registries = [Registry() for _ in range(3)]
        one = Registry()
        for worker, kind, value in events:
            for registry in (registries[worker], one):
                seen = registry.family("seen", "", "counter").metric({"kind": kind})
                sizes = registry.family("sizes", "", "histogram").metric({}, [1, 10])
                seen.increment(value)
                sizes.observe(value)

        merged = merging.families(registry.families() for registry in registries)

        assert values(merged) == values(one.families())

    def test_the_machine_is_exposed_once(self):
        name = "nv_cpu_utilization"
        answers = [
            [Family(name, "gauge", "", [Sample({}, value)], together="first")]
            for value in (0.4, 0.6)
        ]

        (merged,) = merging.families(answers)

        assert merged.samples == [Sample({}, 0.4)]

    def test_of_the_times_of_loads_the_longest_counts(self):
        name = "nv_model_load_duration_secs"
        answers = [[family(name, [Sample({}, value)])] for value in (1.0, 3.0, 2.0)]

        (merged,) = merging.families(answers)

        assert merged.samples == [Sample({}, 3.0)]

    def test_amounts_add_up(self):
        name = "nv_inference_pending_request_count"
        answers = [[Family(name, "gauge", "", [Sample({"model": "m"}, v)])] for v in (1, 2)]

        (merged,) = merging.families(answers)

        assert merged.samples == [Sample({"model": "m"}, 3)]

    def test_a_family_of_only_one_worker_is_exposed(self):
        own = Family("own", "gauge", "help", [Sample({}, 1)])

        assert merging.families([[], [own]]) == [own]

    @pytest.mark.parametrize(
        ("together", "expected"), [("sum", 6), ("first", 2), ("largest", 3), ("smallest", 1)]
    )
    def test_samples_are_combined_by_the_rule_of_their_family(self, together, expected):
        answers = [[Family("x", "gauge", "", [Sample({}, value)], together)] for value in (2, 3, 1)]

        (merged,) = merging.families(answers)

        assert merged.samples == [Sample({}, expected)]
        assert merged.together == together

    @given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 10**9))))
    def test_a_summary_of_all_workers_is_that_of_all_durations(self, durations):
        workers, one = [QuantileSketch() for _ in range(3)], QuantileSketch()
        for worker, ns in durations:
            workers[worker].observe(ns)
            one.observe(ns)

        answers = [
            merging.families_of_values(merging.families_as_values([summary(each)]))
            for each in workers
        ]
        (merged,) = merging.families(answers)

        expected = {text: number for text, number in told(summary(one)).items() if text != "sum"}
        found = told(merged)
        # The fraction of a microsecond in each worker's sum is lost.
        assert abs(found.pop("sum") - one.sum_ns / 1000) <= 3
        assert found == pytest.approx(expected, nan_ok=True)

    def test_families_travel_as_values(self):
        told = [Family("x", "gauge", "help", [Sample({"a": "b"}, math.inf, "_sum")])]

        assert merging.families_of_values(merging.families_as_values(told)) == told


STATES = ("UNAVAILABLE", "UNLOADING", "LOADING", "READY")


def state(name, version, state):
    return {"name": name, "version": version, "state": state}


class TestIndex:
    @given(st.lists(st.sampled_from(STATES), min_size=1))
    def test_the_worst_state_is_reported(self, states):
        answers = {i: [state("m", "1", each)] for i, each in enumerate(states, 1)}

        (merged,) = merging.index(answers, ready_only=False)

        assert merged["state"] == min(states, key=STATES.index)

    @given(st.lists(st.sampled_from(STATES), min_size=1))
    def test_a_model_is_ready_if_all_workers_have_it_ready(self, states):
        answers = {i: [state("m", "1", each)] for i, each in enumerate(states, 1)}

        merged = merging.index(answers, ready_only=True)

        assert bool(merged) == (set(states) == {"READY"})

    def test_a_version_that_a_worker_does_not_have_is_unavailable(self):
        answers = {1: [state("m", "1", "READY")], 2: [{"name": "m"}]}

        assert merging.index(answers, ready_only=False) == [
            {
                "name": "m",
                "version": "1",
                "state": "UNAVAILABLE",
                "reason": "worker 2 does not have it",
            }
        ]

    def test_a_reason_comes_with_its_state(self):
        failed = {**state("m", "1", "UNAVAILABLE"), "reason": "no memory"}

        assert merging.index({1: [state("m", "1", "READY")], 2: [failed]}, False) == [failed]

    def test_models_that_were_never_loaded_are_listed(self):
        assert merging.index({1: [{"name": "m"}], 2: [{"name": "m"}]}, False) == [{"name": "m"}]

    def test_versions_are_in_the_order_of_their_numbers(self):
        answers = {1: [state("m", "10", "READY"), state("m", "9", "READY")]}

        assert [each["version"] for each in merging.index(answers, False)] == ["9", "10"]

    def test_models_of_one_name_are_distinguished_by_their_namespaces(self):
        one, two = ({**state("m", "1", "READY"), "namespace": each} for each in ("/a", "/b"))

        assert merging.index({1: [one, two], 2: [one]}, False) == [
            one,
            {
                "name": "m",
                "namespace": "/b",
                "version": "1",
                "state": "UNAVAILABLE",
                "reason": "worker 2 does not have it",
            },
        ]


class TestGaugesOfModels:
    """A gauge of several workers, as (operation, value) pairs in the order of time."""

    MADE = [
        # mode, operations of each worker in their order, expected value
        ("", [(0, "set", 19), (1, "set", 14)], 14),
        ("", [(1, "set", 14), (0, "set", 19)], 19),
        ("", [(0, "increment", 2), (1, "increment", 3), (0, "increment", -1)], 4),
        ("", [(0, "set", 7), (1, "increment", 3)], 7),
        ("", [(1, "increment", 3), (2, "increment", 3), (0, "set", 0)], 0),
        ("", [(0, "set", 7), (0, "increment", 2), (1, "increment", 5)], 9),
        ("sum", [(0, "set", 19), (1, "set", 14)], 33),
        ("max", [(0, "set", 19), (1, "set", 14), (2, "set", -3)], 19),
        ("min", [(0, "set", 19), (1, "set", 14), (2, "set", 15)], 14),
        ("mostrecent", [(1, "set", 14), (0, "set", 19), (1, "increment", 1)], 15),
        ("mostrecent", [(0, "increment", 1), (1, "increment", 5)], 5),
    ]

    @pytest.mark.parametrize("mode, done, expected", MADE)
    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
    def test_gauges_follow_their_mode(self, mode, done, expected, order):
        workers = [Registry() for _ in range(3)]
        gauges = {
            worker: workers[worker].family("level", "Level", "gauge", mode).metric({"kind": "a"})
            for worker in {worker for worker, _, _ in done}
        }
        for worker, operation, value in done:
            getattr(gauges[worker], operation)(value)
        told = [merging.families_as_values(workers[each].families()) for each in order]

        (merged,) = merging.families(map(merging.families_of_values, told))

        assert merged.samples == [Sample({"kind": "a"}, expected)]

    def test_labels_stay_apart(self):
        workers = [Registry(), Registry()]
        for number, worker in enumerate(workers):
            family = worker.family("level", "Level", "gauge")
            family.metric({"worker": str(number)}).set(number)
            family.metric({"worker": "both"}).increment(1)

        (merged,) = merging.families(each.families() for each in workers)

        assert sorted((each.labels["worker"], each.value) for each in merged.samples) == [
            ("0", 0),
            ("1", 1),
            ("both", 2),
        ]

    def test_two_families_have_times_of_their_own(self):
        workers = [Registry(), Registry()]
        first, second = (worker.family("first", "", "gauge").metric() for worker in workers)
        other = [worker.family("second", "", "gauge").metric() for worker in workers]
        second.set(2)
        first.set(1)
        other[0].set(3)
        other[1].set(4)

        merged = merging.families(each.families() for each in workers)

        assert {each.name: each.samples[0].value for each in merged} == {"first": 1, "second": 4}
