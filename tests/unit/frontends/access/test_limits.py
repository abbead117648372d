"""The limits of a caller, with a clock of the tests."""

import os
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Exhausted, Kind
from frontends.shared.access.bucket_table import BucketTable, Sizes, network_around
from frontends.shared.access.limits import Allowances, Limits


class Clock:
    def __init__(self):
        self.s = 1000.0

    def __call__(self):
        return self.s


@pytest.fixture
def clock():
    return Clock()


def allowance_of(name, limits, clock):
    return Allowances(clock).of(name, limits, known=True)


def taken(allowance, most=1000):
    """Return the number of requests that are admitted now, one after another."""
    for count in range(most):
        try:
            slot = allowance.enter()
        except Exhausted:
            return count
        allowance.leave(slot)
    return most


def test_a_full_token_bucket_admits_a_burst_and_refills_at_the_rate(clock):
    allowance = allowance_of("a", Limits(rate=10, burst=25), clock)

    assert taken(allowance) == 25
    clock.s += 0.5
    assert taken(allowance) == 5
    clock.s += 3600
    assert taken(allowance) == 25


def test_work_that_leaves_a_spare_request_waits_for_it(clock):
    allowance = allowance_of("a", Limits(rate=10, burst=3, concurrent=2), clock)

    slot = allowance.enter(spare=1)
    with pytest.raises(Exhausted, match="has 1 requests in flight, its limit is 2"):
        allowance.enter(spare=1)
    allowance.leave(allowance.enter())
    allowance.leave(slot)
    with pytest.raises(Exhausted, match="more than its limit of 10 requests a second"):
        allowance.enter(spare=1)  # the bucket has one request left
    allowance.leave(allowance.enter())
    clock.s += 0.2
    allowance.leave(allowance.enter(spare=1))


def test_a_limit_of_one_request_has_none_to_spare(clock):
    allowance = allowance_of("a", Limits(rate=1, burst=1, concurrent=1), clock)

    allowance.leave(allowance.enter(spare=1))


def test_without_a_burst_it_is_the_rate_and_at_least_one(clock):
    assert taken(allowance_of("a", Limits(rate=10), clock)) == 10
    assert taken(allowance_of("a", Limits(rate=0.1), clock)) == 1


def test_a_refusal_names_the_caller_the_limit_and_the_retry_time(clock):
    allowance = allowance_of("a", Limits(rate=0.25, burst=1), clock)
    allowance.enter()
    clock.s += 1

    with pytest.raises(Exhausted) as caught:
        allowance.enter()

    assert caught.value.kind is Kind.EXHAUSTED
    assert (
        caught.value.message == "caller 'a' has sent more than its limit of 0.25 requests a second"
    )
    assert caught.value.retry_after_s == pytest.approx(3.0)


def test_the_number_of_concurrent_requests_is_limited(clock):
    allowance = allowance_of("a", Limits(concurrent=2), clock)
    slot = allowance.enter()
    allowance.enter()

    with pytest.raises(Exhausted, match="has 2 requests in flight, its limit is 2"):
        allowance.enter()
    allowance.leave(slot)
    allowance.enter()


def test_a_request_refused_for_concurrency_costs_no_token(clock):
    allowance = allowance_of("a", Limits(rate=1, burst=2, concurrent=1), clock)
    slot = allowance.enter()
    for _ in range(5):
        with pytest.raises(Exhausted):
            allowance.enter()
    allowance.leave(slot)

    allowance.enter()  # the second token is there


@given(
    st.floats(0.01, 1000),
    st.floats(0, 100),
    st.lists(st.floats(0, 10), max_size=50),
)
def test_no_caller_gets_more_than_burst_and_rate_times_time(rate, burst, pauses):
    clock = Clock()
    limits = Limits(rate=rate, burst=burst)
    allowance = allowance_of("a", limits, clock)

    count = 0
    for pause in pauses:
        clock.s += pause
        count += taken(allowance, most=30)

    assert count <= limits.depth + rate * sum(pauses) + 1e-6 * len(pauses)


def test_callers_have_allowances_of_their_own_and_keep_them(clock):
    allowances = Allowances(clock)
    limits = Limits(rate=1)

    assert taken(allowances.of("a", limits, known=True)) == 1
    assert taken(allowances.of("a", limits, known=True)) == 0
    assert taken(allowances.of("b", limits, known=True)) == 1
    assert taken(allowances.of("a", limits, known=False)) == 1
    assert taken(allowances.of("a", Limits(rate=2), known=True)) == 2
    assert allowances.of("a", Limits(), known=True) is None


FEW = Sizes(callers=16, addresses=16, networks=16)


def of_addresses(clock, table, addresses, limits):
    allowances = Allowances(clock, table)
    return [allowances.of(each, limits, known=False) for each in addresses]


def test_an_address_keeps_its_bucket_however_many_others_come(clock):
    limits = Limits(rate=0.1)
    allowances = Allowances(clock, BucketTable(sizes=FEW))
    busy = allowances.of("10.0.0.1", limits, known=False)
    busy.enter()

    for number in range(1000):
        taken(allowances.of(f"11.{number // 250}.{number % 250}.1", limits, known=False))

    assert taken(busy) == 0
    assert taken(allowances.of("10.0.0.1", limits, known=False)) == 0


def test_many_addresses_together_get_no_more_than_the_buckets_that_there_are(clock):
    limits = Limits(rate=0.1)
    many = [f"11.{number // 250}.{number % 250}.1" for number in range(5000)]

    let_in = sum(map(taken, of_addresses(clock, BucketTable(sizes=FEW), many, limits)))

    assert FEW.addresses <= let_in <= FEW.addresses + FEW.networks + 16


def test_a_caller_without_a_slot_shares_the_bucket_of_its_network(clock):
    limits = Limits(rate=0.1)
    networks = Sizes(callers=16, addresses=0, networks=4096)
    first, second, other = of_addresses(
        clock, BucketTable(sizes=networks), ["10.0.0.1", "10.0.0.2", "10.0.1.1"], limits
    )

    first.enter()

    with pytest.raises(Exhausted, match=r"^network '10\.0\.0\.0/24' has sent more than"):
        second.enter()
    other.enter()


def test_at_last_all_that_find_no_place_share_one_bucket(clock):
    limits = Limits(rate=0.1)
    none = Sizes(callers=0, addresses=0, networks=0)
    table = BucketTable(sizes=none)
    first, second = of_addresses(clock, table, ["10.0.0.1", "10.9.0.1"], limits)
    first.enter()

    with pytest.raises(Exhausted, match=r"^group 'other addresses' has sent more than"):
        second.enter()


def test_addresses_do_not_take_the_places_of_callers_that_are_known(clock):
    limits = Limits(rate=0.1)
    allowances = Allowances(clock, BucketTable(sizes=FEW))
    for number in range(1000):
        taken(allowances.of(f"11.{number // 250}.{number % 250}.1", limits, known=False))

    for name in "abcdefgh":
        with pytest.raises(Exhausted, match=f"^caller '{name}'"):
            for _ in range(2):
                allowances.of(name, limits, known=True).enter()


def test_a_slot_is_free_when_its_bucket_is_full_and_no_request_runs(clock):
    limits = Limits(rate=0.1, concurrent=1)
    allowances = Allowances(clock, BucketTable(sizes=Sizes(0, 1, 0)))
    first = allowances.of("10.0.0.1", limits, known=False)
    slot = first.enter()
    clock.s += 10
    allowances.of("unix", limits, known=False).enter()  # shares: the first request still runs
    first.leave(slot)

    second = allowances.of("10.0.0.2", limits, known=False)
    second.enter()

    with pytest.raises(Exhausted, match=r"^address '10\.0\.0\.2' has 1 requests in flight"):
        second.enter()


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.1.2.3", "10.1.2.0/24"),
        ("2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("::1", "::/48"),
        ("unix", None),
        ("", None),
    ],
)
def test_the_network_around_an_address(address, network):
    assert network_around(address) == network


# Several workers: tables over the same memory, as the processes have them.


@pytest.fixture
def workers(clock):
    """The allowances of two workers, and the supervisor's table."""
    file = BucketTable.create_file(2)
    found = [Allowances(clock, BucketTable(file, 2, worker)) for worker in range(2)]
    yield found, BucketTable(file, 2)
    os.close(file)


def test_all_workers_together_admit_up_to_the_limits(workers):
    (one, two), _ = workers
    limits = Limits(rate=0.1, burst=5)

    both = [each.of("a", limits, known=True) for each in (one, two)]

    assert [taken(both[0], 3), taken(both[1]), taken(both[0])] == [3, 2, 0]


def test_concurrent_requests_are_counted_over_all_workers(workers):
    (one, two), _ = workers
    limits = Limits(concurrent=2)
    here, there = (each.of("a", limits, known=True) for each in (one, two))
    slot = here.enter()
    there.enter()

    with pytest.raises(Exhausted, match=r"^caller 'a' has 2 requests in flight, its limit is 2"):
        there.enter()
    here.leave(slot)
    there.enter()


def test_running_requests_of_a_dead_worker_are_released(workers):
    (one, two), supervisor = workers
    limits = Limits(concurrent=2)
    here, there = (each.of("a", limits, known=True) for each in (one, two))
    here.enter()
    there.enter()

    supervisor.buckets.clear(0)

    there.enter()
    with pytest.raises(Exhausted):
        here.enter()


def test_processes_that_count_at_the_same_time_admit_exactly_the_limit(tmp_path):
    file = BucketTable.create_file(4)
    program = textwrap.dedent(f"""
        import os, sys, time
        from frontends.shared.access.limits import Allowances, Limits
        from frontends.shared.access.bucket_table import BucketTable
        from core.errors import Exhausted

        def count(worker, limits):
            allowance = Allowances(time.monotonic, BucketTable({file}, 4, worker)).of("a", limits, known=True)
            sys.stdin.readline()
            let_in = 0
            for _ in range(20_000):
                try:
                    allowance.enter()
                    let_in += 1
                except Exhausted:
                    pass
            print(let_in, flush=True)

        count(int(sys.argv[1]), Limits(rate=1e-6, burst=1000, concurrent=int(sys.argv[2])))
    """)

    def run(concurrent):
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(worker), str(concurrent)],
                pass_fds=[file],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for worker in range(4)
        ]
        for each in processes:
            each.stdin.write("go\n")
            each.stdin.flush()
        return sum(int(each.communicate(timeout=60)[0]) for each in processes)

    assert run(0) == 1000
    assert 490 <= run(500) <= 500
    os.close(file)
