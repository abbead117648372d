"""The soak of the router says if less has happened than it must bring."""

from collections import Counter

import pytest
from router_soak.run import Found
from soak.ledger import Ledger, Refusal, Windows


@pytest.fixture
def ledger():
    return Ledger(Windows())


def found(ledger, offered, seconds, **events):
    for _ in range(offered):
        ledger.right(ledger.begin("plus, HTTP"))
    return Found(ledger, Counter(events), seconds=seconds)


def test_a_machine_too_slow_for_the_rate_is_a_problem(ledger):
    (text,) = found(ledger, offered=530, seconds=60).too_little(rate=10)

    assert text.startswith("9 requests a second were offered, 10 were wanted")


def test_nine_tenths_of_the_rate_are_enough(ledger):
    assert list(found(ledger, offered=540, seconds=60).too_little(rate=10)) == []


def test_a_short_run_may_have_offered_less(ledger):
    assert list(found(ledger, offered=10, seconds=59).too_little(rate=10)) == []


def test_a_kind_of_event_that_never_happened_is_a_problem(ledger):
    long = found(ledger, offered=1200, seconds=120, kill=3, drain=0, load_again=2)

    assert list(long.too_little(rate=10)) == ["drain has not happened in 120 s; run it longer"]
    long.seconds = 119
    assert list(long.too_little(rate=10)) == []


def test_the_last_line_is_the_result(ledger):
    ledger.refuse(ledger.begin("sums, HTTP"), "lost", [Refusal("server ended", "lost")])

    *_, last = found(ledger, offered=99, seconds=10, kill=2, drain=1).lines()

    assert last.startswith(
        "10 requests a second for 10 s: 99 right, 1 refused as their server ended, 0 problems; "
        "drain 1, kill 2; answers after "
    )
