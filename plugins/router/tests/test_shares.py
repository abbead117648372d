"""Shares: fixed parts of the requests for some servers."""

import collections
import math

import pytest
from core_router.choice.choose import choose_on
from core_router.choice.sequences import SequenceParameters, Sequences
from core_router.choice.shares import Shares
from core_router.servers.server import State
from core_router.servers.server_model import FAILURES
from routing.requests import ask, inputs, outputs
from routing.tables import Table

from core.errors import CoreError

TIMES = 20_000


def table_of(percents, *names, models=("m",)):
    found = Table(**{name: (State.READY, dict.fromkeys(models, "1")) for name in names})
    found.table.shares = Shares.of(percents)
    return found


def counts(route, times=TIMES, tried=(), now_s=0.0):
    return collections.Counter(choose_on(route, tried, now_s).server.name for _ in range(times))


def is_near(count, share, times=TIMES):
    """Return whether a count is one of a binomial distribution: one of 500,000 is not."""
    return abs(count - share * times) <= 4.9 * math.sqrt(share * (1 - share) * times)


def test_a_server_gets_its_share_and_the_others_divide_the_rest():
    found = counts(table_of({"*": {"a": 5}}, "a", "b", "c").route("m"))

    assert is_near(found["a"], 0.05)
    assert min(found["b"], found["c"]) > 0.4 * TIMES


def test_the_others_divide_by_their_wait():
    route = table_of({"*": {"a": 5}}, "a", "b", "c").route("m")
    next(each for each in route.candidates if each.server.name == "b").begin()

    found = counts(route)

    assert is_near(found["a"], 0.05) and not found["b"]


def test_shares_hold_whatever_a_server_has_in_flight():
    route = table_of({"*": {"a": 30}}, "a", "b").route("m")
    for _ in range(50):
        route.candidates[0].begin()

    assert is_near(counts(route)["a"], 0.3)


def test_without_others_the_shares_are_those_of_the_whole():
    found = counts(table_of({"*": {"a": 30, "b": 10}}, "a", "b").route("m"))

    assert is_near(found["a"], 0.75)


def test_a_model_with_shares_of_its_own_has_no_others():
    table = table_of({"*": {"a": 0}, "m": {"b": 25}}, "a", "b", models=("m", "n"))

    assert is_near(counts(table.route("m"))["b"], 0.25)
    assert counts(table.route("n")) == {"b": TIMES}


def test_a_server_without_a_share_gets_requests_if_no_other_is_left():
    table = table_of({"*": {"a": 0}}, "a", "b")
    assert counts(table.route("m"), 100) == {"b": 100}

    table.table.servers["b"].is_drained = True

    assert counts(table.route("m"), 100) == {"a": 100}


def test_a_further_attempt_reaches_another_server():
    route = table_of({"*": {"a": 100}}, "a", "b").route("m")
    (a,) = [each for each in route.candidates if each.server.name == "a"]
    assert counts(route, 100) == {"a": 100}

    assert counts(route, 100, tried=(a,)) == {"b": 100}
    for _ in range(FAILURES):
        a.begin()
        a.done(500, 0.01, 0.0)
    assert counts(route, 100) == {"b": 100}


def test_a_server_that_shows_no_index_has_its_share():
    table = Table(a=(State.READY, None), b=(State.READY, None))
    table.table.shares = Shares.of({"m": {"a": 10}})

    assert is_near(counts(table.route("m"))["a"], 0.1)


def test_shares_hold_for_sequences_and_several_routers_agree():
    def begin(route):
        sequences = Sequences()
        return [
            sequences.choose(route, SequenceParameters(key, True, False), (), 0.0).server.name
            for key in range(1, 5001)
        ]

    found, again = [begin(table_of({"m": {"a": 20}}, "a", "b", "c").route("m")) for _ in range(2)]

    assert found == again
    assert is_near(found.count("a"), 0.2, 5000)


# what a person writes -------------------------------------------------------


def test_the_option():
    found = Shares.read(["gpu3:8000=5", "a@b@gpu3:8000=12.5%", "a@b@gpu2:8000=20"])

    assert found.percents == {
        "*": {"gpu3:8000": 5},
        "a@b": {"gpu3:8000": 12.5, "gpu2:8000": 20},
    }
    assert found.servers() == {"gpu2:8000", "gpu3:8000"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpu3:8000", "'gpu3:8000' is no share; write SERVER=PERCENT"),
        ("gpu3:8000=much", "is no share"),
        ("=5", "is no share"),
        ("m@=5", "is no share"),
        ("gpu3:8000=101", "is 101.0; write a number from 0 to 100"),
        ("gpu3:8000=-1", "from 0 to 100"),
        ("gpu3:8000=nan", "from 0 to 100"),
    ],
)
def test_what_is_no_share_is_an_error(text, said):
    with pytest.raises(CoreError, match=said.replace("(", r"\(")):
        Shares.read([text])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "shares are"),
        ({"m": 5}, "shares are"),
        ({"m": {"a": "5"}}, "share of server a for model 'm' is '5'"),
        ({"m": {"a": True}}, "is True"),
        ({"m": {"a": 60, "b": 41}}, "the shares for model 'm' are 101 % together"),
    ],
)
def test_json_that_has_no_shares_is_an_error(value, said):
    with pytest.raises(CoreError, match=said):
        Shares.of(value)


# through the router ---------------------------------------------------------


def who(router, model="who"):
    return outputs(ask(router.port, f"/v2/models/{model}/infer", inputs(5.0)))[-1]


def test_operators_change_shares_while_requests_come(router, three):
    names = [each.name for each in three]
    assert ask(router.admin, "/shares").json == {}

    new = {"who": {names[0]: 100}}
    assert ask(router.admin, "/shares", new, method="PUT").json == new
    assert {who(router) for _ in range(30)} == {0}
    assert who(router, "only_1") == 1  # no other server has it

    new = {"*": {names[0]: 0, names[1]: 100}}
    ask(router.admin, "/shares", new, method="PUT")
    assert {who(router) for _ in range(30)} == {1}
    assert ask(router.admin, "/shares").json == new

    ask(router.admin, "/shares", {}, method="PUT")
    seen = set()
    for _ in range(2000):  # the servers that answer sooner come first
        seen.add(who(router))
        if seen != {1}:
            break
    assert seen != {1}


def test_shares_that_cannot_be_are_refused_and_change_nothing(router, three):
    new = {"who": {three[0].name: 100}}
    ask(router.admin, "/shares", new, method="PUT")

    for value, said in (
        (b"{", "the body is not JSON"),
        ({"who": {"elsewhere:1": 5}}, "no server elsewhere:1; the servers are: 127.0.0.1:"),
        ({"who": {three[0].name: 101}}, "from 0 to 100"),
    ):
        found = ask(router.admin, "/shares", value, method="PUT")
        assert found.status == 400 and said in found.json["error"]
    assert ask(router.admin, "/shares").json == new
