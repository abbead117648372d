"""WaitPolicy chooses the number of replicas. These tests need no Ray."""

from types import SimpleNamespace

import pytest
from core_ray import WaitPolicy


def wanted(waits_ms, busy, present=None, requests=1, **options):
    """Return the number that the policy wants when replica i has reported waits_ms[i] and busy[i]."""
    context = SimpleNamespace(
        target_num_replicas=len(waits_ms) if present is None else present,
        running_replicas=list(range(len(waits_ms))),
        aggregated_metrics={
            "core_wait_ms": dict(enumerate(waits_ms)),
            "core_busy": dict(enumerate(busy)),
        },
        total_num_requests=requests,
    )
    replicas, state = WaitPolicy(**options)(context)
    assert state == {}
    return replicas


@pytest.mark.parametrize(
    "waits_ms, busy, replicas",
    [
        ([99.0], [1.0], 1),  # all is used, and requests wait less than 100 ms
        ([101.0], [1.0], 2),
        ([150.0, 130.0], [1.0, 1.0], 3),  # 280 ms of work for three replicas
        ([900.0, 900.0], [1.0, 1.0], 4),  # at most twice as many
        ([300.0, 0.0], [1.0, 0.1], 3),
    ],
)
def test_replicas_are_added_while_requests_wait_longer_than_the_target(waits_ms, busy, replicas):
    assert wanted(waits_ms, busy) == replicas


@pytest.mark.parametrize(
    "busy, replicas",
    [([0.7, 0.7, 0.7], 3), ([0.5, 0.5, 0.3], 2), ([0.2, 0.1, 0.1], 1), ([0.0, 0.0, 0.0], 1)],
)
def test_replicas_are_removed_while_the_others_stay_below_their_share(busy, replicas):
    assert wanted([0.0] * 3, busy) == replicas


def test_a_wait_below_the_target_keeps_the_replicas_that_hold_it_there():
    assert wanted([90.0, 90.0, 0.0], [0.1, 0.1, 0.0]) == 2


def test_the_targets_are_options():
    assert wanted([40.0], [1.0], target_wait_ms=20) == 2
    assert wanted([0.0] * 3, [0.5] * 3, target_busy=0.5) == 3


def test_replicas_that_start_are_counted_before_more_are_added():
    assert wanted([400.0], [1.0], present=2) == 2
    assert wanted([400.0, 300.0], [1.0, 1.0], present=2) == 4


def test_nothing_is_removed_until_all_replicas_have_reported():
    assert wanted([0.0], [0.0], present=3) == 3


def test_without_reports_the_number_stays():
    context = SimpleNamespace(
        target_num_replicas=2, running_replicas=["a"], aggregated_metrics=None
    )

    assert WaitPolicy()(context) == (2, {})


def test_an_idle_deployment_may_have_no_replica():
    assert wanted([0.0], [0.0], requests=0) == 0
    assert wanted([0.0], [0.0], requests=3) == 1


@pytest.mark.parametrize("options", [{"target_wait_ms": 0}, {"target_busy": 1.5}])
def test_a_target_that_is_none_is_refused(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"{name}="):
        WaitPolicy(**options)
