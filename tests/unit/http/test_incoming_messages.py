"""What a WebSocket is charged for bytes that its session has not taken yet."""

import pytest

from core.system.account import UNCOUNTED, MemoryAccount
from frontends.http.incoming_messages import IncomingMessages

MB = 1 << 20
HEAD = 14


class Session:
    """One that takes messages, and the account that it is charged in."""

    def __init__(self, memory=64 * MB):
        self.account = MemoryAccount(memory, 0)
        self.refused = 0
        self.incoming = IncomingMessages(self.account.share(), self.refuse)
        self.incoming.waits = True

    def refuse(self):
        self.refused += 1

    def take(self, size, is_control=False):
        self.incoming.waits = False
        self.incoming.take(size, is_control=is_control)
        self.incoming.waits = True

    @property
    def held(self):
        return self.account.held


@pytest.fixture
def session():
    return Session()


def test_few_bytes_are_free_of_charge(session):
    session.incoming.came(UNCOUNTED)

    assert session.held == 0
    assert session.incoming.unfinished() is None


def test_a_part_of_a_large_message_is_charged_until_it_is_taken(session):
    session.incoming.came(MB)
    session.incoming.came(MB)
    assert session.held == 2 * MB

    session.take(2 * MB - HEAD)
    assert session.held == 0


def test_a_message_among_others_gives_back_its_own_bytes(session):
    session.incoming.waits = False  # the session is busy while all of them come
    session.incoming.came(3 * MB + 3 * HEAD)

    left = []
    for _ in range(3):
        session.take(MB)
        left.append(session.held)
    assert left == [2 * MB + 3 * HEAD - 2, MB + 3 * HEAD - 4, 0]


def test_pings_within_a_message_give_back_no_more_than_they_bring(session):
    session.incoming.came(MB)
    for _ in range(1000):
        session.incoming.came(2)
        session.take(0, is_control=True)

    assert session.held == MB


def test_pings_between_messages_never_add_up_to_a_message(session):
    for _ in range(UNCOUNTED):
        session.incoming.came(6 + 4)
        session.take(4, is_control=True)

    assert session.held == 0
    assert session.incoming.unfinished() is None


def test_the_bytes_of_an_unfinished_message_grow_until_the_next_one_begins(session):
    session.incoming.came(MB)
    first = session.incoming.unfinished()
    session.incoming.came(6)
    session.take(0, is_control=True)  # a ping
    session.incoming.came(10)
    second = session.incoming.unfinished()
    session.take(MB)
    session.incoming.came(MB)
    third = session.incoming.unfinished()

    assert first.in_body and first.after == second.after != third.after
    assert first.received <= second.received


def test_heads_of_fragments_do_not_count_behind_their_message(session):
    fragments = 8500  # of 1000 bytes, with heads of 8 bytes
    session.incoming.came(fragments * 1008 // 2)
    session.incoming.waits = False  # the session is busy when the end comes
    session.incoming.came(fragments * 1008 // 2)

    session.take(fragments * 1000)

    assert session.held == 0
    assert session.incoming.unfinished() is None


@pytest.mark.parametrize("size", [MB, 64 * MB])
def test_the_next_message_counts_although_a_message_had_fragments(size):
    session = Session(memory=128 * MB)
    session.incoming.waits = False
    session.incoming.came(size + HEAD + MB)

    session.take(size)

    assert session.held > MB
    assert session.incoming.unfinished() is not None


def test_a_busy_session_is_not_waited_for(session):
    session.incoming.came(MB)
    session.incoming.waits = False

    assert session.incoming.unfinished() is None


def test_without_memory_it_refuses_once_and_keeps_its_charge_until_the_end():
    session = Session(memory=3 * MB)
    session.incoming.came(MB)
    session.incoming.came(MB)
    session.incoming.came(MB)

    assert session.refused == 1 and session.incoming.is_over
    assert session.held == MB
    session.incoming.close()
    session.incoming.close()
    assert session.held == 0
