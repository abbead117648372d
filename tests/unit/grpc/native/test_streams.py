"""Streams of the native engine, and the windows of both sides."""

import asyncio

import numpy as np
import pytest

from core.errors import CoreError, Kind
from frontends.grpc.method import StreamMethod

OK, CANCELLED, DEADLINE, INTERNAL, EXHAUSTED = 0, 1, 4, 13, 8
PATH = "/test.Service/"
MIB = 2**20


class TestStreams:
    async def test_messages_come_back_in_order(self, peer):
        number = peer.open("Chat")
        for each in range(200):
            peer.send(number, b"%d" % each)
        peer.end(number)

        answer = await peer.ended(peer.answers[number])
        assert [data for _, data in answer.messages] == [b"%d" % each for each in range(200)]
        assert answer.status == OK

    async def test_a_message_is_answered_while_the_client_may_send_more(self, peer):
        number = peer.open("Chat")
        answer = peer.answers[number]

        for count in range(1, 4):
            peer.send(number, b"x")
            await peer.until(lambda count=count: len(answer.messages) == count)

        assert not answer.ended

    async def test_a_stream_without_messages_ends(self, peer):
        number = peer.open("Chat")
        peer.end(number)

        answer = await peer.ended(peer.answers[number])
        assert (answer.messages, answer.status) == ([], OK)

    async def test_the_method_may_end_first(self, connect):
        async def refuse(requests, call):
            yield await anext(requests)
            raise CoreError(Kind.INVALID, "enough")

        peer = connect(StreamMethod(PATH + "Refuse", "", refuse))
        number = peer.open("Refuse")
        peer.send(number, b"first")

        answer = await peer.ended(peer.answers[number])
        assert answer.messages == [(False, b"first")]
        assert (answer.status, answer.text) == (3, "enough")
        await peer.until(lambda: answer.reset == 0)  # nobody listens to what the client still sends

    async def test_an_unexpected_error_is_internal(self, connect, caplog):
        async def broken(requests, call):
            async for each in requests:
                raise ZeroDivisionError("nobody thought of it")
                yield each

        peer = connect(StreamMethod(PATH + "Broken", "", broken))

        answer = await peer.ended(peer.call("Broken"))

        assert answer.status == INTERNAL
        assert answer.text == "Broken failed: ZeroDivisionError; see the log"
        assert "nobody thought of it" in caplog.text

    @pytest.mark.parametrize("end", ["reset", "lost", "deadline"])
    async def test_a_stream_without_a_client_is_cancelled(self, connect, end):
        ended = asyncio.Event()
        calls = []

        async def endless(requests, call):
            calls.append(call)
            try:
                async for each in requests:
                    yield each
            finally:
                ended.set()

        peer = connect(StreamMethod(PATH + "Endless", "", endless))
        number = peer.open("Endless", grpc_timeout="50m" if end == "deadline" else "1H")
        peer.send(number, b"x")
        await peer.until(lambda: peer.answers[number].messages)

        if end == "reset":
            peer.h2.reset_stream(number)
            peer.exchange()
        elif end == "lost":
            peer.connection.connection_lost(None)
        else:
            await peer.ended(peer.answers[number])
            assert peer.answers[number].status == DEADLINE

        await asyncio.wait_for(ended.wait(), 20)
        assert calls[0].cancelled

    async def test_the_last_message_must_be_whole(self, peer):
        number = peer.open("Chat")
        peer.send_bytes(number, b"\0\0\0\0\5ab", end=True)

        answer = await peer.ended(peer.answers[number])
        assert (answer.messages, answer.status) == ([], INTERNAL)


class TestWindowOfTheServer:
    """Data that a client may send ahead."""

    async def test_a_method_that_does_not_read_stops_the_client(self, connect):
        going_on = asyncio.Event()

        async def slow(requests, call):
            await going_on.wait()
            size = 0
            async for each in requests:
                size += len(each)
            yield b"%d" % size

        peer = connect(StreamMethod(PATH + "Slow", "", slow))
        number = peer.open("Slow")
        message = bytes(MIB // 2 - 5)
        sent = 0
        while peer.h2.local_flow_control_window(number) > MIB // 2 and sent < 100:
            peer.send(number, message)
            sent += 1

        assert sent < 100  # a hundred of them would be 50 MiB
        # Other calls go on meanwhile.
        assert peer.call("Echo", bytes(3 * MIB)).messages == [(False, bytes(3 * MIB))]

        going_on.set()
        await peer.until(lambda: peer.h2.local_flow_control_window(number) > 2 * MIB)
        peer.end(number)
        answer = await peer.ended(peer.answers[number])
        assert answer.messages == [(False, b"%d" % (sent * len(message)))]

    @pytest.mark.parametrize("method", ["Echo", "Chat"])
    async def test_a_message_larger_than_the_window_arrives(self, peer, method):
        data = np.random.default_rng(1).bytes(20 * MIB)

        answer = await peer.ended(peer.call(method, data))

        assert answer.messages == [(False, data)]

    async def test_a_message_that_is_only_announced_takes_no_memory(self, connect):
        import resource

        peer = connect(most_bytes=2**31 - 1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        for _ in range(50):
            number = peer.open("Echo")
            peer.send_bytes(number, b"\0\x7f\xff\xff\xff")
            peer.send_bytes(number, b"a little")

        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown_kib < 100 * 1024

    async def test_a_large_message_that_ends_early_leaves_the_others_well(self, peer):
        for size in (10, 300_000, 3_000_000):
            number = peer.open("Echo")
            peer.send_bytes(number, b"\0\x03\0\0\0" + bytes(size))
            peer.h2.reset_stream(number)
            peer.exchange()

        assert peer.call("Echo", b"well").messages == [(False, b"well")]

    async def test_a_message_grows_as_it_comes_when_many_are_announced(self, peer):
        for size in (60, 60, 60, 60, 15):  # of the 256 MiB that a connection reserves
            number = peer.open("Echo")
            peer.send_bytes(number, b"\0" + (size * MIB).to_bytes(4, "big") + b"x")
        data = np.random.default_rng(1).bytes(3 * MIB)

        for message in (data, data[: 2 * MIB + 1]):
            assert peer.call("Echo", message).messages == [(False, message)]


class TestWindowOfTheClient:
    """Data that the server may send ahead."""

    async def test_a_tiny_window_gets_everything(self, connect):
        peer = connect(window=7)

        answer = await peer.ended(peer.call("Echo", bytes(range(256)) * 4))

        assert answer.messages == [(False, bytes(range(256)) * 4)]

    async def test_a_client_that_does_not_read_holds_up_only_itself(self, connect):
        peer = connect(reads=False, window=1000)

        large = peer.call("Echo", bytes(MIB))
        small = peer.call("Echo", b"x")

        assert len(large.data) == 1000 and not large.ended
        assert small.messages == [(False, b"x")]

    async def test_large_answers_take_turns(self, connect, service):
        peer = connect()
        peer.open_windows()
        order = []
        heard = peer.heard

        def hear(event):
            if hasattr(event, "data") and event.data:
                order.append(event.stream_id)
            heard(event)

        peer.heard = hear
        first, second = peer.open("Later"), peer.open("Later")
        for number in (first, second):
            peer.send(number, b"", end=True)

        for _, _, done in service.waiting:
            done(bytes(8 * MIB))

        await peer.until(lambda: all(peer.answers[n].ended for n in (first, second)))
        assert order.index(second) < len(order) - 1 - order[::-1].index(first)

    async def test_a_stream_waits_for_window_space(self, connect):
        given = []

        async def flood(requests, call):
            for number in range(200):
                given.append(number)
                yield bytes(10_000)

        peer = connect(StreamMethod(PATH + "Flood", "", flood), reads=False)
        answer = peer.call("Flood")
        await asyncio.sleep(0)
        for _ in range(500):
            await asyncio.sleep(0)

        assert len(given) < 30
        peer.reads = True
        peer.h2.increment_flow_control_window(10 * MIB)
        peer.h2.increment_flow_control_window(10 * MIB, 1)
        await peer.ended(answer)
        assert (len(answer.messages), len(given)) == (200, 200)

    async def test_a_deadline_ends_a_call_whose_response_is_not_read(self, connect):
        peer = connect(reads=False, window=1000)

        answer = peer.call("Echo", bytes(MIB), grpc_timeout="50m")
        await peer.until(lambda: answer.reset is not None)

        assert answer.reset == 8


class TestLargeAnswers:
    async def test_buffers_are_passed_on_without_a_copy(self, connect, service):
        peer = connect()
        peer.open_windows()
        array = np.arange(4_000_000, dtype=np.float32)
        answer = peer.call("Later")
        before = len(peer.wire.writes)

        service.waiting[0][2]([b"head", array])
        await peer.ended(answer)

        assert answer.messages == [(False, b"head" + array.tobytes())]
        start = array.__array_interface__["data"][0]
        views = [
            each
            for write in peer.wire.writes[before:]
            for each in write
            if isinstance(each, memoryview)
        ]
        owned = [np.frombuffer(each, np.uint8).__array_interface__["data"][0] for each in views]
        assert all(start <= address < start + array.nbytes for address in owned)
        assert sum(map(len, views)) > 0.99 * array.nbytes

    async def test_their_owner_goes_when_they_are_sent(self, peer, service):
        import weakref

        class Owned(np.ndarray):
            pass

        array = np.zeros(1_000_000, np.uint8).view(Owned)
        alive = weakref.ref(array)
        answer = peer.call("Later")
        service.waiting[0][2]([array])
        del array

        await peer.ended(answer)
        peer.wire.writes.clear()
        peer.wire.taken = 0
        assert alive() is None

    async def test_a_full_transport_gets_no_more_data(self, connect, service):
        peer = connect()
        peer.open_windows()
        answer = peer.call("Later")
        peer.wire.after_write = peer.connection.pause_writing
        before = len(peer.wire.writes)

        service.waiting[0][2](bytes(20 * MIB))
        for _ in range(20):
            await asyncio.sleep(0)
        written = peer.wire.writes[before:]
        assert len(written) == 1 and sum(map(len, written[0])) < 2 * MIB

        peer.wire.after_write = lambda: None
        peer.connection.resume_writing()
        await peer.ended(answer)
        assert len(answer.messages[0][1]) == 20 * MIB


async def test_unary_and_streams_share_a_connection(peer):
    number = peer.open("Chat")
    for each in range(50):
        peer.send(number, b"s%d" % each)
        assert peer.call("Echo", b"u%d" % each).messages == [(False, b"u%d" % each)]
    peer.end(number)

    answer = await peer.ended(peer.answers[number])
    assert [data for _, data in answer.messages] == [b"s%d" % each for each in range(50)]
