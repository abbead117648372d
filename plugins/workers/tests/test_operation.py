"""What one worker cannot load, no worker serves."""

import pytest
from core_workers.operation import Operation
from hypothesis import given
from hypothesis import strategies as st


class Told(list):
    def __call__(self, worker, operation, model, objection):
        self.append((worker, model, objection))


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def operation(told):
    return Operation(7, {1, 2}, told)


def test_nobody_is_told_before_all_have_said_so(operation, told):
    operation.vote(1, "m", "")

    assert told == []


def test_all_are_told_when_all_could(operation, told):
    operation.vote(1, "m", "")
    operation.vote(2, "m", "")

    assert told == [(1, "m", ""), (2, "m", "")]


def test_an_objection_is_told_at_once_with_its_worker(operation, told):
    operation.vote(1, "m", "")
    operation.vote(2, "m", "no memory")

    assert told == [(1, "m", "worker 2: no memory"), (2, "m", "worker 2: no memory")]


def test_who_comes_late_hears_what_was_decided(operation, told):
    operation.vote(1, "m", "no memory")
    told.clear()

    operation.vote(2, "m", "")

    assert told == [(2, "m", "worker 1: no memory")]


def test_a_worker_that_had_nothing_to_load_agrees(operation, told):
    operation.vote(1, "m", "")
    operation.ended(2)

    assert told == [(1, "m", "")]


def test_a_worker_that_failed_before_does_not_agree(operation, told):
    operation.ended(2, "worker 2 has ended")
    operation.vote(1, "m", "")

    assert told == [(1, "m", "worker 2 has ended")]


def test_a_worker_that_agreed_and_failed_later_is_no_objection(operation, told):
    operation.vote(2, "step", "")
    operation.ended(2, "worker 2 failed")
    operation.vote(1, "step", "")

    assert told == [(2, "step", ""), (1, "step", "")]


def test_models_are_decided_apart(operation, told):
    operation.vote(1, "a", "")
    operation.vote(2, "b", "")
    operation.vote(2, "a", "")

    assert told == [(1, "a", ""), (2, "a", "")]


@given(st.permutations(range(1, 5)), st.sets(st.integers(1, 4)), st.sets(st.integers(1, 4)))
def test_in_any_order_all_voters_hear_the_same_once(order, failing, idle):
    told = Told()
    operation = Operation(1, order, told)

    for worker in order:
        if worker not in idle:
            operation.vote(worker, "m", "full" if worker in failing else "")
        operation.ended(worker, "failed" if worker in failing else "")

    voters = set(order) - idle
    assert sorted(worker for worker, *_ in told) == sorted(voters)
    # Whoever hears that all is well has nobody beside it that failed.
    assert all(bool(objection) == bool(failing) for *_, objection in told)
