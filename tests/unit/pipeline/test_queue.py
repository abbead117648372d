"""The queue: order, levels, policies."""

import random

import pytest

from core.errors import CoreError, Kind
from core.pipeline.batching.queue import QueuedRequest, QueuePolicy, RequestQueue
from core.request import InferenceRequest
from core.response import Reply

US = 1000


def entry(queue, *, priority=0, timeout_us=0, at_ns=0):
    request = InferenceRequest("m", {}, priority=priority, timeout_us=timeout_us)
    request.arrival_ns = at_ns
    waiting = QueuedRequest(request, Reply(request))
    queue.push(waiting)
    return waiting


def test_requests_leave_in_the_order_of_arrival():
    queue = RequestQueue()
    entries = [entry(queue) for _ in range(3)]

    assert list(queue.in_order()) == entries


def test_requests_of_level_one_run_before_those_of_level_two():
    queue = RequestQueue(levels=2, default_level=2)
    low, high = entry(queue, priority=2), entry(queue, priority=1)

    assert list(queue.in_order()) == [high, low]


@pytest.mark.parametrize("priority", [0, 3, 99])
def test_a_priority_outside_the_levels_means_the_default_level(priority):
    queue = RequestQueue(levels=2, default_level=2)

    assert entry(queue, priority=priority).level == 2


def test_without_levels_the_priority_is_ignored():
    queue = RequestQueue()
    first, second = entry(queue, priority=5), entry(queue, priority=1)

    assert list(queue.in_order()) == [first, second]


def test_a_full_queue_refuses_requests():
    queue = RequestQueue(QueuePolicy(size=2))
    entry(queue), entry(queue)

    with pytest.raises(CoreError, match="Exceeds maximum queue size") as error:
        entry(queue)
    assert error.value.kind is Kind.UNAVAILABLE
    assert len(queue) == 2


def test_each_level_has_its_own_size():
    queue = RequestQueue(QueuePolicy(size=1), 2, 1, {2: QueuePolicy(size=2)})
    entry(queue, priority=1)
    entry(queue, priority=2), entry(queue, priority=2)

    with pytest.raises(CoreError):
        entry(queue, priority=1)


def test_a_request_whose_timeout_has_passed_is_refused():
    queue = RequestQueue(QueuePolicy(timeout_us=10))
    old, young = entry(queue, at_ns=0), entry(queue, at_ns=5 * US)

    assert queue.next_expiry_ns() == 10 * US
    assert queue.expire(10 * US) == [old]
    assert list(queue.in_order()) == [young]
    assert len(queue) == 1


def test_a_request_whose_timeout_has_passed_is_refused_behind_one_that_arrived_later():
    """It waited elsewhere before it came to the queue: for its turn, or for a look into the cache."""
    queue = RequestQueue(QueuePolicy(timeout_us=100))
    later, earlier = entry(queue, at_ns=50 * US), entry(queue, at_ns=0)

    assert queue.next_expiry_ns() == 100 * US
    assert queue.expire(now_ns=100 * US) == [earlier]
    assert list(queue.in_order()) == [later]


def test_a_shorter_timeout_counts_behind_a_request_that_was_put_back():
    queue = RequestQueue(QueuePolicy(timeout_us=100, may_override=True))
    entry(queue, at_ns=0)
    again = entry(queue, at_ns=0)
    queue.remove(again)
    queue.put_back(again)
    short = entry(queue, timeout_us=10, at_ns=0)

    assert queue.next_expiry_ns() == 10 * US
    assert queue.expire(now_ns=10 * US) == [short]


def test_a_rescheduled_request_never_expires():
    queue = RequestQueue(QueuePolicy(timeout_us=10, size=1))
    again = entry(queue)
    queue.take([again])
    other = entry(queue, at_ns=5 * US)

    queue.put_back(again)

    assert queue.expire(20 * US) == [other]
    assert list(queue.in_order()) == [again]


def test_a_delayed_request_goes_after_those_in_time():
    queue = RequestQueue(QueuePolicy(timeout_us=10, delay=True))
    old, young = entry(queue, at_ns=0), entry(queue, at_ns=5 * US)

    assert queue.expire(10 * US) == []
    assert list(queue.in_order()) == [young, old]
    assert len(queue) == 2


def test_a_request_may_shorten_its_timeout_if_the_policy_allows_it():
    queue = RequestQueue(QueuePolicy(timeout_us=10, may_override=True))

    assert entry(queue, timeout_us=4).expiry_ns == 4 * US
    assert entry(queue, timeout_us=40).expiry_ns == 10 * US


@pytest.mark.parametrize("policy", [QueuePolicy(timeout_us=10), QueuePolicy(may_override=True)])
def test_a_request_cannot_set_its_timeout_without_permission(policy):
    queue = RequestQueue(policy)

    assert entry(queue, timeout_us=4).expiry_ns == policy.timeout_us * US


def test_a_request_can_be_removed_from_the_middle_once():
    queue = RequestQueue()
    first, middle, last = entry(queue), entry(queue), entry(queue)

    assert queue.remove(middle)
    assert not queue.remove(middle)
    assert list(queue.in_order()) == [first, last]


def test_a_request_that_was_taken_cannot_be_removed():
    queue = RequestQueue()
    first = entry(queue)
    queue.take([first])

    assert not queue.remove(first)
    assert len(queue) == 0


@pytest.mark.parametrize("seed", range(20))
def test_the_queue_behaves_as_a_sorted_list(seed):
    """Against the obvious: sort by (level, late, arrival)."""
    chance = random.Random(seed)
    queue = RequestQueue(
        QueuePolicy(timeout_us=50, delay=True), 3, 2, {1: QueuePolicy(timeout_us=20)}
    )
    model, now = [], 0
    for number in range(400):
        now += chance.randrange(6) * US
        refused = queue.expire(now)
        expired = [e for e in model if e["expiry"] and e["expiry"] <= now]
        assert {id(w) for w in refused} == {id(e["entry"]) for e in expired if e["level"] == 1}
        model = [e for e in model if e not in expired or e["level"] != 1]
        for item in expired:
            item["late"], item["expiry"] = (item["expiry"], item["number"]), 0
        action = chance.random()
        if action < 0.6:
            priority = chance.randrange(5)
            added = entry(queue, priority=priority, at_ns=now)
            level = priority if 1 <= priority <= 3 else 2
            model.append(
                {
                    "entry": added,
                    "level": level,
                    "late": (),
                    "number": number,
                    "expiry": now + (20 if level == 1 else 50) * US,
                }
            )
        elif action < 0.8 and model:
            chosen = chance.choice(model)
            model.remove(chosen)
            assert queue.remove(chosen["entry"])
        else:
            order = list(queue.in_order())[: chance.randrange(4)]
            queue.take(order)
            model = [e for e in model if e["entry"] not in order]
        model.sort(key=lambda e: (e["level"], e["late"], e["number"]))
        assert list(queue.in_order()) == [e["entry"] for e in model]
        assert len(queue) == len(model)
