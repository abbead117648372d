"""The cost of a call before its admission, and the memory of all calls of a connection."""

import gzip
import struct

import pytest
from h2.exceptions import StreamClosedError

from core.errors import DeadlineExceeded
from frontends.grpc.method import StreamMethod, UnaryMethod
from frontends.shared.access.unauthenticated import Unauthenticated

OK, DEADLINE, EXHAUSTED, UNAUTHENTICATED, INTERNAL = 0, 4, 8, 16, 13
PATH = "/test.Service/"
MB = 2**20
PREFIX = struct.pack(">?I", False, 10 * MB)
SECRET = ("secret", "yes")


class Policy:
    """Admits calls that show the secret. `admitted` are all of them, `ended` those that are over."""

    def __init__(self):
        self.admitted = []
        self.ended = []

    def enter(self, call):
        if call.value("secret") != "yes":
            raise Unauthenticated("show the secret", shown=False)
        call = Admitted(self.ended)
        self.admitted.append(call)
        return call


class Admitted:
    def __init__(self, ended):
        self._ended = ended

    def end(self, status, bytes_out):
        self._ended.append(self)


@pytest.fixture
def policy():
    return Policy()


@pytest.fixture
async def guarded(connect, policy, service):
    """A client of methods that the policy guards."""
    return connect(
        UnaryMethod(PATH + "Guarded", "", service.task, begin=service.later, enter=policy.enter),
        UnaryMethod(PATH + "GuardedTask", "", service.task, enter=policy.enter),
        StreamMethod(PATH + "GuardedChat", "", service.chat, enter=policy.enter),
    )


@pytest.fixture
async def small(port):
    """Make what connections share, with an account of some bytes."""

    def make(size, *methods, **options):
        return port(*methods, request_memory_byte_size=size, **options)

    return make


class TestEntering:
    @pytest.mark.parametrize("method", ["Guarded", "GuardedTask", "GuardedChat"])
    async def test_a_call_is_refused_when_its_headers_are_here(self, guarded, method, service):
        number = guarded.open(method)
        guarded.exchange()

        answer = await guarded.ended(guarded.answers[number])

        assert (answer.status, answer.text) == (UNAUTHENTICATED, "show the secret")
        assert service.calls == service.waiting == []

    async def test_data_of_a_refused_call_is_dropped(self, guarded):
        number = guarded.open("Guarded")
        guarded.h2.send_data(number, PREFIX + bytes(8000))
        guarded.exchange()

        assert guarded.connection.share.held == 0
        assert guarded.answers[number].status == UNAUTHENTICATED

    @pytest.mark.parametrize("method", ["Guarded", "GuardedTask", "GuardedChat"])
    async def test_a_message_that_would_be_unpacked_is_not(self, guarded, method):
        bomb = gzip.compress(bytes(8 * MB))

        answer = await guarded.ended(
            guarded.call(method, bomb[:16000], compressed=1, grpc_encoding="gzip")
        )

        assert answer.status == UNAUTHENTICATED

    @pytest.mark.parametrize("method", ["GuardedTask", "GuardedChat"])
    async def test_an_admitted_call_is_answered_and_leaves_once(self, guarded, method, policy):
        answer = await guarded.ended(guarded.call(method, b"x", SECRET))

        assert answer.messages == [(False, b"x")]
        assert answer.status == OK
        assert policy.ended == policy.admitted and len(policy.admitted) == 1

    async def test_an_answer_later_leaves_then(self, guarded, policy, service):
        answer = guarded.call("Guarded", b"x", SECRET)
        assert policy.ended == []

        service.waiting[0][2](b"y")

        assert (await guarded.ended(answer)).messages == [(False, b"y")]
        assert len(policy.ended) == 1

    async def test_a_call_that_is_reset_before_its_message_leaves(self, guarded, policy):
        number = guarded.open("Guarded", SECRET)
        guarded.send_bytes(number, PREFIX + b"some")
        assert policy.admitted and policy.ended == []

        guarded.h2.reset_stream(number)
        guarded.exchange()

        assert policy.ended == policy.admitted

    async def test_a_connection_that_is_lost_leaves_with_all_calls(self, guarded, policy):
        for method in ("Guarded", "GuardedTask", "GuardedChat"):
            guarded.open(method, SECRET)
        guarded.exchange()

        guarded.connection.connection_lost(None)

        assert len(policy.admitted) == 3
        assert set(policy.ended) == set(policy.admitted)

    async def test_an_error_of_the_admission_is_internal(self, connect, service):
        def enter(call):
            raise RuntimeError("no")

        peer = connect(UnaryMethod(PATH + "Broken", "", service.task, enter=enter))

        assert (await peer.ended(peer.call("Broken"))).status == INTERNAL


class TestAccount:
    async def test_small_calls_are_not_counted(self, peer):
        peer.call("Later", bytes(20_000))

        assert peer.connection.share.held == 0

    async def test_a_message_that_comes_is_counted_and_given_back(self, connect, small):
        peer = connect(to=small(64 * MB))
        number = peer.open("Later")
        peer.send_bytes(number, PREFIX + bytes(5 * MB))
        held = peer.connection.share.held

        peer.h2.reset_stream(number)
        peer.exchange()

        assert 5 * MB - 64 * 1024 <= held < 6 * MB
        assert peer.connection.share.held == 0

    async def test_a_message_beyond_the_memory_limit_is_refused_and_the_connection_continues(
        self, connect, small
    ):
        peer = connect(to=small(8 * MB))
        number = peer.open("Later")
        peer.send_bytes(number, PREFIX + bytes(3 * MB))

        number = peer.open("Later")
        with pytest.raises(StreamClosedError):
            peer.send_bytes(number, PREFIX + bytes(3 * MB))

        answer = await peer.ended(peer.answers[number])
        assert answer.status == EXHAUSTED
        assert "--request-memory-byte-size" in answer.text
        assert (await peer.ended(peer.call("Echo", b"x"))).messages == [(False, b"x")]

    async def test_open_calls_are_counted_too(self, connect, small):
        peer = connect(to=small(64 * MB))
        for _ in range(1000):
            number = peer.open("Later")
            peer.h2.send_data(number, struct.pack(">?I", False, 256 * 1024) + b"x")
        peer.exchange()

        assert peer.connection.share.held > MB

    async def test_an_answer_that_is_not_read_is_counted_until_it_is(self, connect, small, service):
        peer = connect(to=small(64 * MB), reads=False)
        peer.call("Later")
        service.waiting[0][2](bytes(10 * MB))
        await peer.until(lambda: peer.wire.writes)
        held = peer.connection.share.held

        peer.open_windows()
        await peer.until(lambda: peer.answers[1].ended)

        assert 9 * MB < held < 11 * MB
        assert peer.connection.share.held == 0

    async def test_a_response_beyond_the_memory_limit_ends_its_call(self, connect, small, service):
        peer = connect(to=small(8 * MB))
        answer = peer.call("Later")

        service.waiting[0][2](bytes(10 * MB))

        assert (await peer.ended(answer)).status == EXHAUSTED

    async def test_a_lost_connection_releases_its_memory(self, connect, small):
        port = small(64 * MB)
        peer = connect(to=port)
        peer.send_bytes(peer.open("Later"), PREFIX + bytes(5 * MB))
        share = peer.connection.share
        assert share.held

        peer.connection.connection_lost(None)

        assert share.held == 0


class TestUnpacking:
    async def test_decompression_far_beyond_the_size_is_refused(self, connect, small):
        peer = connect(to=small(0, unpaid_memory_byte_size=8 * MB))
        bomb = gzip.compress(bytes(16 * MB))

        answer = await peer.ended(peer.call("Task", bomb, compressed=1, grpc_encoding="gzip"))

        assert answer.status == EXHAUSTED
        assert "--unpaid-memory-byte-size" in answer.text
        assert peer.connection.share.unpaid == 0

    async def test_decompression_within_the_ratio_is_accepted(self, connect, small):
        peer = connect(to=small(0, unpaid_memory_byte_size=0))
        message = b"".join(b"%08d" % number for number in range(500_000))
        packed = gzip.compress(message)
        assert len(message) < 16 * len(packed)

        answer = await peer.ended(peer.call("Task", packed, compressed=1, grpc_encoding="gzip"))

        assert answer.messages == [(False, message)]

    async def test_unpaid_bytes_are_held_until_the_answer(self, connect, service):
        peer = connect()
        answer = peer.call(
            "Later", gzip.compress(bytes(2 * MB)), compressed=1, grpc_encoding="gzip"
        )
        await peer.until(lambda: service.waiting)
        unpaid = peer.connection.share.unpaid

        service.waiting[0][2](b"y")
        await peer.ended(answer)

        assert MB < unpaid <= 2 * MB
        assert peer.connection.share.unpaid == 0


class TestTime:
    """--grpc-message-timeout-secs"""

    async def test_a_message_that_does_not_come_ends_its_call(self, connect):
        peer = connect(grpc_message_timeout_secs=1)
        number = peer.open("Task")
        peer.send_bytes(number, PREFIX + b"some")

        answer = await peer.ended(peer.answers[number])

        assert answer.status == DEADLINE
        assert "--grpc-message-timeout-secs" in answer.text and "4 of 10485760 bytes" in answer.text
        assert (await peer.ended(peer.call("Echo", b"x"))).status == OK

    async def test_a_unary_call_without_a_message_ends_too(self, connect):
        peer = connect(grpc_message_timeout_secs=1)
        number = peer.open("Task")
        peer.exchange()

        assert (await peer.ended(peer.answers[number])).status == DEADLINE

    async def test_a_stream_may_be_silent_between_messages(self, connect):
        peer = connect(grpc_message_timeout_secs=1)
        silent, stuck = peer.open("Chat"), peer.open("Chat")
        peer.send(silent, b"one")
        peer.send_bytes(stuck, PREFIX)

        assert (await peer.ended(peer.answers[stuck])).status == DEADLINE

        peer.send(silent, b"two", end=True)
        assert (await peer.ended(peer.answers[silent])).messages == [
            (False, b"one"),
            (False, b"two"),
        ]

    async def test_bytes_that_came_earn_time(self, connect):
        """A second for each 64 KiB: of two messages that begin together the smaller one ends first."""
        peer = connect(grpc_message_timeout_secs=1)
        large, small = peer.open("Task"), peer.open("Task")
        peer.send_bytes(large, PREFIX + bytes(MB))
        peer.send_bytes(small, PREFIX + b"some")

        await peer.ended(peer.answers[small])

        assert not peer.answers[large].ended

    async def test_none_is_no_limit(self, connect):
        peer = connect(grpc_message_timeout_secs=0)
        number = peer.open("Task")
        peer.send_bytes(number, PREFIX)

        peer.connection._tick()

        assert not peer.answers[number].ended


class TestDeadlines:
    async def test_an_answer_at_the_deadline_is_not_reset(self, connect, service):
        """The response is complete but not sent at the deadline: the client gets one or the other."""
        peer = connect()
        answer = peer.call("Later", grpc_timeout="20m")
        done = service.waiting[0][2]
        peer.connection.pause_writing()
        done(b"x")
        await peer.until(lambda: service.waiting[0][1].expired)
        peer.connection._tick()
        peer.connection.resume_writing()

        await peer.ended(answer)

        assert answer.reset is None
        assert answer.status == OK

    async def test_a_cancellation_at_the_deadline_is_the_deadline(self, peer, service):
        answer = peer.call("Later")
        service.waiting[0][2](DeadlineExceeded())

        assert (await peer.ended(answer)).status == DEADLINE
