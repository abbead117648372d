"""Which server gets a request."""

import pytest
from core_router.choice import sequences as module
from core_router.choice.budget import RESERVE, RetryBudget
from core_router.choice.choose import choose
from core_router.choice.sequences import SequenceParameters, Sequences, first_choice
from core_router.servers.server import Address, Server, State
from core_router.servers.server_model import EJECTED_S, FAILURES, ServerModel
from routing.tables import Table


def candidates(count):
    return tuple(ServerModel(Server(Address("host", 8000 + i)), "m") for i in range(count))


def take(found, seconds=0.01, status=200, now_s=0.0):
    """Have a server answer a request."""
    found.begin()
    found.done(status, seconds, now_s)


def chosen(of, now_s=0.0, tried=(), times=200):
    found = [choose(of, tried, now_s) for _ in range(times)]
    return [found.count(each) / times for each in of]


def test_a_drained_server_takes_no_requests():
    server = Table(a=(State.READY, None)).table.servers["a"]
    assert server.takes_requests
    server.is_drained = True
    assert not server.takes_requests


def test_equal_servers_get_equal_shares():
    for count in (2, 3, 5):
        assert min(chosen(candidates(count), times=2000)) > 0.6 / count


def test_the_server_with_fewer_requests_in_flight_gets_the_next():
    first, second = of = candidates(2)
    first.begin()

    assert chosen(of) == [0, 1]
    first.left()
    second.begin()
    assert chosen(of) == [1, 0]


def test_a_slow_server_gets_requests_when_the_others_have_as_much_waiting_time():
    slow, fast = of = candidates(2)
    take(slow, 0.1)
    take(fast, 0.01)
    for _ in range(8):
        fast.begin()
        assert choose(of, (), 0.0) is fast
    for _ in range(3):
        fast.begin()
    assert choose(of, (), 0.0) is slow


def test_the_worst_of_many_servers_gets_nothing():
    of = candidates(3)
    of[1].begin()

    assert chosen(of)[1] == 0


def test_a_slow_past_is_forgotten():
    slow, fast = of = candidates(2)
    take(slow, 1.0)
    take(fast, 0.01, now_s=59.0)

    assert choose(of, (), 0.0) is fast
    assert choose(of, (), 60.0) is slow


def test_a_failed_request_does_not_make_a_server_look_fast():
    broken, good = candidates(2)
    for each in (broken, good):
        take(each, 0.1)
    take(broken, 0.001, status=500)

    assert broken.latency_s == good.latency_s


def test_a_server_whose_model_fails_is_ejected_for_longer_each_time():
    broken, _ = of = candidates(2)
    for _ in range(FAILURES):
        take(broken, status=500)

    assert chosen(of, now_s=EJECTED_S * 0.99) == [0, 1]
    assert choose(of, (), EJECTED_S) is not None
    for _ in range(FAILURES):
        take(broken, status=500, now_s=EJECTED_S)
    assert chosen(of, now_s=EJECTED_S * 2.99) == [0, 1]


def test_a_success_ends_a_row_of_failures():
    (found,) = candidates(1)
    for _ in range(FAILURES * 3):
        take(found, status=500)
        take(found)

    assert found.ejections == 0


def test_more_than_half_of_the_servers_are_not_ejected():
    of = candidates(3)
    for each in of[:2]:
        for _ in range(FAILURES):
            take(each, status=500)

    assert choose(of, (of[2],), 0.0) in of[:2]
    assert choose(of[:1], (), 0.0) is of[0]


def test_a_server_that_was_tried_is_not_chosen_again():
    of = candidates(3)

    assert chosen(of, tried=(of[0],))[0] == 0
    assert chosen(of, tried=of[:2]) == [0, 0, 1]
    assert choose(of, of, 0.0) is None
    assert choose((), (), 0.0) is None


def test_retries_are_a_share_of_the_requests():
    budget = RetryBudget()
    assert sum(budget.take() for _ in range(1000)) == RESERVE

    for _ in range(100):
        budget.request()
    assert sum(budget.take() for _ in range(100)) == pytest.approx(20, abs=1)


def test_routers_agree_about_a_sequence():
    mine, other = candidates(3), candidates(3)

    for key in (*range(50), "text"):
        found = first_choice(key, mine, (), 0.0)
        assert found.server.name == first_choice(key, other, (), 0.0).server.name
    assert {first_choice(key, mine, (), 0.0) for key in range(50)} == set(mine)


def test_a_server_that_leaves_changes_only_its_own_sequences():
    of = candidates(3)

    for key in range(50):
        before = first_choice(key, of, (), 0.0)
        if before is not of[0]:
            assert first_choice(key, of[1:], (), 0.0) is before


def test_a_sequence_is_forgotten_at_its_end_and_after_a_while():
    sequences, (found,) = Sequences(), candidates(1)
    for key in (1, 2, 3):
        sequences.begin("m", key, found, 0.0)
    sequences.end("m", 1)
    assert sequences.find("m", 2, 50.0) is found
    sequences.expire(10.0)

    assert [sequences.find("m", key, 60.0) for key in (1, 2, 3)] == [None, found, None]
    assert sequences.find("other", 2, 60.0) is None


def test_a_sequence_whose_server_was_down_begins_again():
    table = Table(a=(State.READY, {"m": "1"}))
    route, sequences = table.route("m"), Sequences()
    server = table.table.servers["a"]

    def ask(is_start):
        return sequences.choose(route, SequenceParameters(7, is_start, False), (), 0.0)

    assert ask(is_start=True) is ask(is_start=False) is server.models["m"]
    server.set_state(State.DOWN, "refused")
    server.set_state(State.READY)

    assert ask(is_start=False) is None
    assert sequences.failure(route, SequenceParameters(7, False, False)) == (
        "sequence 7 was on server a, which has ended since: begin the sequence again"
    )
    assert len(sequences) == sequences.by_server()[server.name] == 0
    assert ask(is_start=True) is ask(is_start=False) is server.models["m"]
    assert len(sequences) == sequences.by_server()[server.name] == 1


class Undeclared:
    """Two servers with a model that declares no sequences, and requests of sequences for it."""

    def __init__(self):
        self.table = Table(a=(State.READY, {"m": "1"}), b=(State.READY, {"m": "1"}))
        self.sequences = Sequences()

    def ask(self, identifier=7, is_start=False):
        """Return the server of a request; the error without one."""
        route, named = self.table.route("m"), SequenceParameters(identifier, is_start, False)
        found = self.sequences.choose(route, named, (), 0.0)
        return found.server if found is not None else self.sequences.failure(route, named)


@pytest.fixture
def undeclared():
    return Undeclared()


def test_a_request_that_names_a_sequence_stays_on_its_server_whatever_the_model(undeclared):
    for key in range(20):
        server = undeclared.ask(key)
        server.is_drained = True
        undeclared.table.table.changed()
        assert undeclared.ask(key) is server
        server.is_drained = False


def test_without_a_start_one_request_fails_after_the_end_of_the_server(undeclared):
    server = undeclared.ask()
    server.set_state(State.DOWN)

    assert undeclared.ask() == (
        f"sequence 7 was on server {server.name}, which has ended since: begin the sequence again"
    )
    assert undeclared.ask() is not server


def test_a_sequence_that_has_begun_fails_until_it_begins_again(undeclared):
    server = undeclared.ask(is_start=True)
    server.set_state(State.DOWN)

    assert "begin the sequence again" in undeclared.ask()
    assert "begin the sequence again" in undeclared.ask()
    assert undeclared.ask(is_start=True) is undeclared.ask() is not server


def unloads(server):
    del server.models["m"]


def is_not_ready(server):
    server.set_state(NOT_READY)


def is_removed(server):
    server.is_removed = True


@pytest.mark.parametrize("end", [unloads, is_not_ready, is_removed])
def test_without_a_start_one_request_fails_after_the_server_takes_no_more(undeclared, end):
    server = undeclared.ask()
    end(server)

    assert undeclared.ask().startswith(f"sequence 7 was on server {server.name}, which ")
    assert undeclared.ask() is undeclared.ask() is not server


def test_a_drained_server_without_the_model_has_no_sequences(undeclared):
    server = undeclared.ask()
    server.is_drained = True
    unloads(server)

    assert "no longer takes it: begin the sequence again" in undeclared.ask()
    assert undeclared.ask() is not server


def test_a_server_that_is_not_ready_keeps_its_sequences_if_no_other_is_left(undeclared):
    server = undeclared.ask()
    for each in undeclared.table.table.servers.values():
        is_not_ready(each)

    assert undeclared.ask() is server


def test_requests_for_an_unknown_model_begin_no_sequence(undeclared):
    for server in undeclared.table.table.servers.values():
        unloads(server)

    assert undeclared.ask() is undeclared.ask()
    assert len(undeclared.sequences) == 0


def test_sequences_that_never_end_are_bounded(undeclared, monkeypatch):
    monkeypatch.setattr(module, "_MOST_UNDECLARED", 3)
    for key in (1, 2, 3, 1, 4):
        undeclared.ask(key)

    assert [undeclared.sequences.find("m", key, 0.0) is not None for key in (1, 2, 3, 4)] == [
        True,
        False,
        True,
        True,
    ]
    undeclared.sequences.expire(1.0)
    assert len(undeclared.sequences) == 0


def test_long_identifiers_are_not_kept(undeclared):
    long, other = "x" * 100_000, "x" * 99_999 + "y"
    servers = {each: undeclared.ask(each) for each in (long, other)}

    assert all(undeclared.ask(each) is server for each, server in servers.items())
    assert len(undeclared.sequences) == 2
    assert all(len(part) <= 256 for key in undeclared.sequences._undeclared for part in key)
    servers[long].set_state(DOWN)
    assert undeclared.ask(long).startswith(f"sequence {'x' * 256}… was on server ")
    for each in (long, other):
        undeclared.sequences.end("m", each)
    assert len(undeclared.sequences) == 0


READY, NOT_READY, DOWN = State.READY, State.NOT_READY, State.DOWN


def test_a_request_reaches_the_servers_with_its_model():
    table = Table(a=(READY, {"m": "1"}), b=(READY, {"m": "12"}), c=(READY, {"n": "1"}))

    assert table.names("m") == (["a", "b"], True)
    assert table.names("m", "2") == (["b"], True)
    assert table.names("n") == (["c"], True)
    assert table.names() == (["a", "b", "c"], True)


def test_a_server_that_is_not_ready_is_better_than_none():
    table = Table(a=(READY, {"m": "1"}), b=(NOT_READY, {"m": "1", "n": "1"}), c=(DOWN, {"o": "1"}))

    assert table.names("m") == (["a"], True)
    assert table.names("n") == (["b"], True)


def test_a_model_that_is_not_loaded_is_known():
    table = Table(a=(READY, {"m": ""}), b=(READY, {}))

    assert table.names("m") == (["a"], True)
    assert table.names("unknown") == (["a", "b"], False)


def test_a_server_without_an_index_may_have_any_model():
    table = Table(a=(READY, {"m": "1"}), b=(READY, None))

    assert table.names("m") == (["a"], True)
    assert table.names("unknown") == (["b"], True)


def test_a_drained_server_gets_nothing():
    table = Table(a=(READY, {"m": "1"}), b=(READY, {"m": "1"}))
    table.table.servers["a"].is_drained = True

    assert table.names("m") == (["b"], True)
    assert table.table.is_ready()
    table.table.servers["b"].is_drained = True
    assert table.names("m") == ([], False)
    assert not table.table.is_ready()
