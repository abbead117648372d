"""Which version answers: shares within binomial bounds, sticky requests, rules, sequences."""

import math
import random
import sys

import pytest
from core_traffic.choice import Choice, Sequences
from core_traffic.settings import Traffic

from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest

MANY = 10_000


def choice(weights, versions=(1, 2, 3), **more):
    traffic = Traffic.read("m", {"weights": weights, **more})
    return Choice(traffic, versions, "m", random.Random(7).random)


def of(user=None, **fields):
    parameters = {} if user is None else {"user": user}
    return InferenceRequest("m", {}, parameters=parameters, **fields)


def assert_binomial(count, total, share):
    """Within four standard deviations: one test of 16,000 fails by chance."""
    assert abs(count - total * share) <= 4 * math.sqrt(total * share * (1 - share))


@pytest.mark.parametrize(
    "weights",
    [{"1": 99, "2": 1}, {"1": 50, "2": 50}, {"1": 1, "2": 2, "3": 1}, {"1": 0.001, "2": 0.009}],
)
@pytest.mark.parametrize("sticky", [False, True])
def test_shares_are_those_of_the_weights(weights, sticky):
    chosen = choice(weights, **({"sticky": {"parameter": "user"}} if sticky else {}))
    found = [chosen.of(of(f"user-{number}")) for number in range(MANY)]

    for number, weight in weights.items():
        assert_binomial(found.count(int(number)), MANY, weight / sum(weights.values()))


def test_a_version_of_weight_0_gets_nothing():
    assert {choice({"1": 0, "2": 1}).of(of()) for _ in range(100)} == {2}


def test_a_version_that_does_not_serve_leaves_its_share_to_the_others():
    chosen = choice({"1": 80, "2": 15, "3": 5}, versions=(2, 3))

    assert chosen.shares == {2: 0.75, 3: 0.25}
    assert choice({"1": 1}, versions=(2,)).of(of()) is None


def test_sticky_requests_stay_while_a_weight_grows():
    users = [f"user-{number}" for number in range(2000)]
    before = dict.fromkeys(users, 1)
    for weight in (1, 5, 25, 50, 99):
        chosen = choice({"1": 100 - weight, "2": weight}, sticky={"parameter": "user"})
        after = {user: chosen.of(of(user)) for user in users}
        moved = [user for user in users if after[user] != before[user]]
        assert moved
        assert all(after[user] == 2 for user in moved)  # nobody goes back
        before = after


def test_when_one_of_three_weights_grows_requests_move_to_that_version_only():
    sticky = {"sticky": {"parameter": "user"}}
    one = choice({"1": 10, "2": 10, "3": 10}, **sticky)
    other = choice({"1": 10, "2": 30, "3": 10}, **sticky)
    users = [of(f"user-{number}") for number in range(2000)]

    moved = [(one.of(user), other.of(user)) for user in users if one.of(user) != other.of(user)]

    assert len(moved) > 300
    assert {after for _, after in moved} == {2}


def test_sticky_choices_of_models_are_independent():
    traffic = Traffic.read("m", {"weights": {"1": 1, "2": 1}, "sticky": {"parameter": "user"}})
    one, other = (Choice(traffic, (1, 2), name) for name in ("m", "n"))
    users = [of(f"user-{number}") for number in range(MANY)]

    assert_binomial(sum(one.of(user) == other.of(user) for user in users), MANY, 0.5)


def test_requests_without_the_sticky_text_are_drawn():
    chosen = choice({"1": 1, "2": 1}, sticky={"parameter": "user"})

    assert {chosen.of(of()) for _ in range(100)} == {1, 2}
    assert {chosen.of(of("")) for _ in range(100)} == {1, 2}


def test_a_correlation_id_can_be_sticky():
    chosen = choice({"1": 1, "2": 1}, sticky={"correlation_id": True})

    assert len({chosen.of(of(correlation_id="abc")) for _ in range(100)}) == 1
    assert {chosen.of(of(correlation_id=number)) for number in range(1, 100)} == {1, 2}


def test_the_first_rule_that_fits_decides():
    rules = [
        {"parameter": "user", "equals": "ann", "version": 2},
        {"parameter": "user", "version": 3},
    ]
    chosen = choice({"1": 1}, rules=rules)

    assert [chosen.of(of(user)) for user in ("ann", "bob", None)] == [2, 3, 1]


def test_a_rule_for_a_version_that_does_not_serve_is_skipped():
    rules = [{"parameter": "user", "version": 3}]

    assert choice({"1": 1}, versions=(1, 2), rules=rules).of(of("ann")) == 1


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_a_sequence_stays_where_it_began(clock):
    sequences, versions = Sequences(lambda: 1.0, clock), iter((2, 1, 1))

    def ask(flags=0, serving=(1, 2)):
        request = of(correlation_id=5, flags=flags)
        return sequences.version_of(request, lambda request: next(versions), serving)

    assert [ask(SEQUENCE_START), ask(), ask(SEQUENCE_END)] == [2, 2, 2]
    assert len(sequences) == 0
    assert [ask(SEQUENCE_START), ask()] == [1, 1]  # a new one is chosen anew
    assert ask(SEQUENCE_START | SEQUENCE_END) == 1
    assert len(sequences) == 0


def test_of_a_long_id_only_a_digest_is_remembered(clock):
    sequences = Sequences(lambda: 1.0, clock)
    ids = ["a" * 100_000 + end for end in ("1", "2", "\ud800")]
    for version, id in enumerate(ids, 1):
        start = of(correlation_id=id, flags=SEQUENCE_START)
        sequences.version_of(start, lambda request, version=version: version, (1, 2, 3))

    later = [
        sequences.version_of(of(correlation_id=id), lambda request: 9, (1, 2, 3)) for id in ids
    ]

    assert later == [1, 2, 3]
    assert all(sys.getsizeof(key) < 200 for key in sequences._begun)


def test_a_sequence_whose_version_is_gone_is_chosen_anew(clock):
    sequences = Sequences(lambda: 1.0, clock)
    sequences.version_of(of(correlation_id=5, flags=SEQUENCE_START), lambda request: 2, (1, 2))

    assert sequences.version_of(of(correlation_id=5), lambda request: 1, (1,)) == 1


def test_a_request_that_belongs_to_no_sequence_is_not_remembered(clock):
    sequences = Sequences(lambda: 1.0, clock)

    assert sequences.version_of(of(correlation_id=5), lambda request: 2, (1, 2)) == 2
    assert len(sequences) == 0


def test_sequences_that_pause_for_too_long_are_forgotten(clock):
    sequences = Sequences(lambda: 100.0, clock)

    def ask(number, flags=0):
        sequences.version_of(of(correlation_id=number, flags=flags), lambda request: 1, (1,))

    for number in (1, 2):
        ask(number, SEQUENCE_START)
    clock.now = 150.0
    ask(1)
    clock.now = 201.0
    ask(3, SEQUENCE_START)

    assert len(sequences) == 2  # 1 and 3


def test_a_request_after_a_long_pause_forgets_a_few_sequences_only(clock):
    asked = []
    sequences = Sequences(lambda: asked.append(None) or 100.0, clock)
    for number in range(1, 251):
        request = of(correlation_id=number, flags=SEQUENCE_START)
        sequences.version_of(request, lambda request: 1, (1,))
    clock.now = 201.0

    left = []
    for _ in range(3):
        sequences.version_of(of(correlation_id=0), lambda request: 1, (1,))
        left.append(len(sequences))

    assert left == [150, 50, 0]
    assert len(asked) == 3


def test_a_longer_pause_that_is_allowed_later_holds_at_once(clock):
    idle_s = 1.0
    sequences = Sequences(lambda: idle_s, clock)
    sequences.version_of(of(correlation_id=5, flags=SEQUENCE_START), lambda request: 2, (1, 2))
    idle_s = 300.0
    clock.now = 400.0

    assert sequences.version_of(of(correlation_id=5), lambda request: 1, (1, 2)) == 2


def test_the_number_of_remembered_sequences_is_bounded(clock, monkeypatch):
    monkeypatch.setattr("core_traffic.choice.MOST_SEQUENCES", 5)
    sequences = Sequences(lambda: 1.0, clock)
    for number in range(1, 20):
        request = of(correlation_id=number, flags=SEQUENCE_START)
        sequences.version_of(request, lambda request: 1, (1,))

    assert len(sequences) == 5
    assert sequences.version_of(of(correlation_id=19), lambda request: 2, (1, 2)) == 1
    assert sequences.version_of(of(correlation_id=1), lambda request: 2, (1, 2)) == 2
