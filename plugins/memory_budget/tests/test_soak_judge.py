"""What a soak of `make soak-memory` finds wrong, with facts that are made up."""

import threading
import time
from types import SimpleNamespace

import pytest
from memory_budget import judge, sampler
from memory_budget.clients import DEAD, LEFT
from memory_budget.disturber import KILLS, LOADS, Disturber
from memory_budget.judge import Found
from memory_budget.sampler import Sampler
from memory_budget.steady import Answers

MB = 1 << 20
DONE = {LOADS: 3, KILLS: 2}


def disturbed(done, *, failures=(), error=None, seconds=60.0, kills=True, left=4):
    found = Found()
    found.results[LEFT] = left
    judge.judge_disturbances(found, done, failures, error, seconds=seconds, kills=kills)
    return found.problems


def test_disturbances_that_went_on_to_the_end_are_no_problem():
    assert disturbed(DONE) == []
    assert disturbed({LOADS: 3}, kills=False) == []
    assert disturbed(DONE, failures=["m1: 400", "m2: 400"]) == []
    assert disturbed({}, seconds=1.2, left=0) == []


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"done": {KILLS: 2}}, "no loads by an operator in 60 s"),
        ({"done": {LOADS: 3}}, "no killed processes in 60 s"),
        ({"done": DONE, "left": 0}, "no requests that were left in 60 s"),
        ({"done": DONE, "error": OSError("gone"), "seconds": 1}, "ended early: OSError: gone"),
        ({"done": DONE, "failures": ["m1: 500"] * 3}, "3 loads by an operator failed"),
    ],
)
def test_disturbances_that_are_missing_or_end_early_are_a_problem(given, text):
    (problem,) = disturbed(**given)

    assert text in problem


@pytest.mark.parametrize("error", [TimeoutError("timed out"), ConnectionResetError("reset")])
def test_an_error_that_ends_the_disturbances_is_kept(monkeypatch, error):
    def post(server, path):
        raise error

    monkeypatch.setattr("memory_budget.disturber.post", post)
    monkeypatch.setattr("memory_budget.disturber.EVERY_S", 0.001)
    disturber = Disturber(None, None, 3, False, 1)

    disturber.start()
    disturber._thread.join(10)
    disturber.stop()

    assert disturber.error is error
    assert not disturber.done


@pytest.mark.parametrize(("most_dead", "problems"), [(2, 0), (1, 1)])
def test_as_many_requests_may_be_with_a_killed_process_as_clients_could_send(most_dead, problems):
    found = Found()
    found.results[DEAD] = 2

    judge.judge_requests(found, [], most_dead)

    assert len(found.problems) == problems


def test_a_failed_request_is_a_problem():
    found = Found()

    judge.judge_requests(found, ["m1: failed: 7.0, expected 1000.0"], 0)

    assert found.problems == ["1 requests failed, such as ['m1: failed: 7.0, expected 1000.0']"]


@pytest.mark.parametrize(
    ("loads", "text"),
    [(2, None), (4, "the hit rate is 0.000, an offline LRU has 0.500"), (0, "no load on request")],
)
def test_the_hit_rate_is_that_of_an_lru(loads, text):
    found = Found()

    judge.judge_hit_rate(
        found, [("a", True), ("a", True), ("b", True), ("b", True)], loads, {"a": 5, "b": 5}, 5
    )

    assert [each for each in found.problems if not text or text not in each] == []
    assert bool(found.problems) == bool(text)


@pytest.mark.parametrize(
    ("samples", "longest_s", "text"),
    [
        ([50 * MB, 116 * MB], 0.3, None),  # 100 MiB and 16
        ([117 * MB], 0.3, "the kernel counts 117 MiB, the budget is 100 MiB"),
        ([50 * MB], 5.1, "two samples of the memory are 5.1 s apart"),
        ([], 0.3, "no sample"),
        ([-1], 0.3, "no sample"),
    ],
)
def test_the_kernel_counts_no_more_than_the_budget_and_all_the_time(samples, longest_s, text):
    found = Found()

    judge.judge_memory(found, samples, longest_s, 100 * MB, 400 * MB, due=0, seconds=0)

    assert [text in each for each in found.problems] == [True] * bool(text)


def test_the_tolerance_of_a_large_budget_is_a_hundredth():
    found = Found()

    judge.judge_memory(
        found, [10_101 * MB], 0.1, 10_000 * MB, 40_000 * MB, due=1, seconds=judge.LONG_S
    )

    assert found.problems == ["the kernel counts 10101 MiB, the budget is 10000 MiB"]


@pytest.mark.parametrize(
    ("count", "seconds", "problems"),
    [
        (960, 60, []),
        (959, 60, ["959 samples of the memory, expected 960 at least: 80% of 1200"]),
        (10, 59, []),  # a busy machine may take few in a short soak
    ],
)
def test_a_long_soak_needs_four_fifths_of_its_samples(count, seconds, problems):
    found = Found()

    judge.judge_memory(found, [MB] * count, 1, 100 * MB, 400 * MB, due=1200, seconds=seconds)

    assert found.problems == problems


def test_a_slow_sample_does_not_delay_the_next_one(monkeypatch):
    now_s, taken = 0.0, []

    def sample(pid):
        nonlocal now_s
        taken.append(now_s)
        now_s += 0.12 if len(taken) == 3 else 0.03
        return 0

    def wait(seconds):
        nonlocal now_s
        now_s += seconds
        return now_s > 0.5

    monkeypatch.setattr(sampler, "private_bytes", lambda pid: 0)
    made = Sampler(1, 0)
    monkeypatch.setattr(sampler, "private_bytes", sample)
    monkeypatch.setattr(sampler, "time", SimpleNamespace(monotonic=lambda: now_s))
    monkeypatch.setattr(made._ended, "wait", wait)
    made._begun = 0.0

    made._run()

    assert taken == pytest.approx([0.05, 0.1, 0.15, 0.27, 0.32, 0.37, 0.42, 0.47])


def test_a_sampler_that_dies_has_a_gap_until_its_end(monkeypatch):
    monkeypatch.setattr(sampler, "private_bytes", lambda pid: 0)
    monkeypatch.setattr(sampler, "EVERY_S", 0.001)
    monkeypatch.setattr(threading, "excepthook", lambda given: None)
    made = Sampler(1, 0)
    monkeypatch.setattr(sampler, "private_bytes", lambda pid: 1 / 0)

    made.start()
    made._thread.join(10)
    time.sleep(0.05)
    made.stop()

    assert made.samples == []
    assert made.longest_s >= 0.05


def answers(alone_ms, beside_ms, count=600, failures=()):
    """Answers in a quiet time from 0 to 1, under loads from 1 to 2, and in a quiet time from 2 to 3."""
    times = [(0.5, alone_ms / 1e3)] * count + [(1.5, beside_ms / 1e3)] * count
    return Answers(times, list(failures))


def pinned(given, *, compared=True):
    found = Found()
    judge.judge_pinned(found, given, [0.0, 1.0, 2.0, 2.0, 3.0], compared=compared)
    return found


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (answers(10, 10.9), None),
        (answers(10, 11.1), "loads of others make the p99 1.11 times as long"),
        (answers(10, 10, count=499), "fewer than 500 requests for the pinned model"),
        (answers(10, 10, failures=["503 busy"]), "503 busy"),
    ],
)
def test_loads_of_others_may_make_the_pinned_model_a_tenth_slower(given, text):
    assert [text in each for each in pinned(given).problems] == [True] * bool(text)


def test_without_quiet_times_only_failures_of_the_pinned_model_count():
    found = pinned(answers(10, 99, count=3, failures=["503 busy"] * 9), compared=False)

    assert found.problems == ["503 busy"] * 5
    assert found.facts["the pinned model alone"].endswith("in 3 requests")
    assert pinned(Answers(), compared=False).facts["the pinned model alone"] == "no requests"
