"""What a WebSocket is charged for bytes that its session has not taken yet."""

import struct

import pytest

from core.system.account import UNCOUNTED, MemoryAccount
from frontends.http.incoming_messages import IncomingMessages

MB = 1 << 20
TEXT, PART, LAST, PING = 0x81, 0x01, 0x80, 0x89  # first bytes of frames; a part begins a text


def frame(size, first=TEXT):
    """Return a frame of a client with `size` bytes of content."""
    if size < 126:
        head = bytes([first, 0x80 | size])
    elif size < 1 << 16:
        head = struct.pack(">BBH", first, 0x80 | 126, size)
    else:
        head = struct.pack(">BBQ", first, 0x80 | 127, size)
    return head + b"mask" + bytes(size)


def fragments(size, count):
    """Return the frames of a text of `count` fragments of `size` bytes."""
    return frame(size, PART) + frame(size, 0) * (count - 2) + frame(size, LAST)


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
    session.incoming.came(frame(UNCOUNTED))

    assert session.held == 0
    assert session.incoming.unfinished() is None


def test_a_part_of_a_large_message_is_charged_until_it_is_taken(session):
    sent = frame(2 * MB)
    session.incoming.came(sent[:MB])
    assert MB - 14 <= session.held <= MB
    session.incoming.came(sent[MB:])
    assert session.held == 2 * MB

    session.take(2 * MB)
    assert session.held == 0


def test_a_message_among_others_gives_back_its_own_bytes(session):
    session.incoming.waits = False  # the session is busy while all of them come
    session.incoming.came(frame(MB) * 3)

    left = []
    for _ in range(3):
        session.take(MB)
        left.append(session.held)
    assert left == [2 * MB, MB, 0]


@pytest.mark.parametrize("piece", [1, 2, 5, 13, 1000])
def test_frames_are_counted_however_they_are_cut(session, piece):
    sent = frame(3) + fragments(700, 3) + frame(0) + frame(9, PING) + frame(70_000)

    for at in range(0, len(sent), piece):
        session.incoming.came(sent[at : at + piece])

    assert session.held == 3 + 3 * 700 + 9 + 70_000


def test_frames_without_a_mask_are_counted_too(session):
    session.incoming.came(struct.pack(">BBQ", TEXT, 127, MB) + bytes(MB))

    assert session.held == MB


def test_pings_within_a_message_give_back_no_more_than_they_bring(session):
    session.incoming.came(frame(MB, PART))
    for _ in range(1000):
        session.incoming.came(frame(5, PING))
        session.take(5, is_control=True)

    assert session.held == MB


def test_pings_between_messages_never_add_up_to_a_message(session):
    for _ in range(UNCOUNTED):
        session.incoming.came(frame(4, PING))
        session.take(4, is_control=True)

    assert session.held == 0
    assert session.incoming.unfinished() is None


def test_the_bytes_of_an_unfinished_message_grow_until_the_next_one_begins(session):
    session.incoming.came(frame(MB, PART))
    first = session.incoming.unfinished()
    session.incoming.came(frame(0, PING))
    session.take(0, is_control=True)
    second = session.incoming.unfinished()
    session.incoming.came(frame(10, 0))
    third = session.incoming.unfinished()
    session.incoming.came(frame(0, LAST))
    session.take(MB + 10)
    session.incoming.came(frame(MB, PART))
    fourth = session.incoming.unfinished()

    assert first.in_body and first == second  # a ping is no progress
    assert third.after == first.after and third.received == first.received + len(frame(10, 0))
    assert fourth.after != first.after and fourth.received == first.received


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize(("size", "count"), [(1000, 8500), (1, 100_000), (0, 100_000)])
def test_heads_of_fragments_do_not_count_behind_their_message(session, size, count, waits):
    sent = frame(MB, PART) + fragments(size, count)[len(frame(size, PART)) :]
    session.incoming.came(sent[: len(sent) // 2])
    session.incoming.waits = waits  # without, the session is busy when the end comes
    session.incoming.came(sent[len(sent) // 2 :])
    assert session.held == MB + size * (count - 1)

    session.take(MB + size * (count - 1))

    assert session.held == 0
    assert session.incoming.unfinished() is None


def test_small_fragments_are_progress_with_their_heads(session):
    session.incoming.came(frame(MB, PART))
    before = session.incoming.unfinished().received

    session.incoming.came(frame(1, 0) * 10_000)

    assert session.incoming.unfinished().received - before == 10_000 * len(frame(1))


@pytest.mark.parametrize("size", [MB, 32 * MB])
def test_the_next_message_counts_although_a_message_had_fragments(size):
    session = Session(memory=128 * MB)
    session.incoming.waits = False
    session.incoming.came(fragments(size // 2, 2) + frame(2 * MB)[:MB])

    session.take(size)

    assert MB - 14 <= session.held <= MB
    assert session.incoming.unfinished() is not None


def test_a_busy_session_is_not_waited_for(session):
    session.incoming.came(frame(MB, PART))
    session.incoming.waits = False

    assert session.incoming.unfinished() is None


def test_without_memory_it_refuses_once_and_keeps_its_charge_until_the_end():
    session = Session(memory=3 * MB)
    session.incoming.came(frame(MB, PART))
    session.incoming.came(frame(MB, 0))
    session.incoming.came(frame(MB, 0))

    assert session.refused == 1 and session.incoming.is_over
    assert session.held == MB
    session.incoming.close()
    session.incoming.close()
    assert session.held == 0
