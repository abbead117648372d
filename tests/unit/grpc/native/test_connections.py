"""Connections of the native engine: their ends, their age, and clients that mean harm."""

import asyncio
import struct

import pytest
from h2.events import PingAckReceived, PingReceived
from hpack import Encoder

ENHANCE_YOUR_CALM = 11
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
REQUEST = [
    (":method", "POST"),
    (":scheme", "http"),
    (":authority", "localhost"),
    (":path", "/test.Service/Later"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
]


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def request(number, flags=END_HEADERS, extra=()):
    return frame(HEADERS, flags, number, Encoder().encode([*REQUEST, *extra], huffman=False))


class TestNoise:
    @pytest.mark.parametrize(
        "noise",
        [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"\x16\x03\x01\x02\x00",
            bytes(1000),
            PREFACE[:-1] + b"x",
            PREFACE + bytes(100),
            PREFACE + frame(PING, payload=bytes(8)),
            PREFACE + frame(SETTINGS) + frame(HEADERS, END_HEADERS, 2, b"\x82"),
            PREFACE + frame(SETTINGS) + frame(CONTINUATION, END_HEADERS, 1, b"\x82"),
            PREFACE + frame(SETTINGS) + frame(DATA, 0, 1, b"x"),
            PREFACE + frame(SETTINGS) + frame(HEADERS, END_HEADERS, 1, b"\xff" * 20),
            PREFACE + frame(SETTINGS) + b"\xff\xff\xff\0\0\0\0\0\0",
        ],
        ids=[
            *("HTTP/1.1", "TLS", "zeros", "nearly", "no settings", "ping first", "even stream"),
            *("continuation of nothing", "data of nothing", "no HPACK", "large frame"),
        ],
    )
    async def test_invalid_http2_ends_the_connection(self, stranger, noise):
        peer = stranger()

        peer.feed(noise)

        assert peer.wire.closed


@pytest.fixture
async def raw(connect):
    """A client that sends raw frames."""
    peer = connect()
    peer.exchange()
    return peer


def ends_calmly(peer):
    """Return whether the server has sent ENHANCE_YOUR_CALM and closed the connection."""
    peer.without_goaway(peer.wire.take())
    return peer.wire.closed and peer.goaway is not None and peer.goaway[0] == ENHANCE_YOUR_CALM


def resets(peer):
    """Stream → error code of each that the server has reset by now."""
    rest, found = peer.wire.take(), {}
    while rest:
        size = 9 + int.from_bytes(rest[:3], "big")
        if rest[3] == RESET:
            number, code = struct.unpack(">II", rest[5:13])
            found[number] = code
        rest = rest[size:]
    return found


class TestFloods:
    @pytest.mark.parametrize(
        "flood",
        [
            frame(SETTINGS),
            frame(PING, ACK, payload=bytes(8)),
            frame(PRIORITY, 0, 1, bytes(5)),
            frame(WINDOW, 0, 0, struct.pack(">I", 1)),
            frame(DATA, 0, 1),
        ],
        ids=["settings", "acks", "priorities", "windows", "empty data"],
    )
    async def test_empty_frames_are_counted(self, raw, flood):
        raw.feed(request(1))

        for _ in range(300):
            raw.feed(flood * 100)
            if raw.wire.closed:
                break

        assert raw.wire.closed

    @pytest.mark.parametrize("kind", [0x0A, 0x10, 0x42, 0xFF])
    async def test_frames_of_unknown_types_are_counted(self, raw, kind):
        for _ in range(300):
            raw.feed(frame(kind, payload=b"some") * 100)
            if raw.wire.closed:
                break

        assert ends_calmly(raw)

    async def test_a_frame_of_an_unknown_type_is_skipped(self, peer):
        peer.feed(frame(0x42, payload=bytes(100)))

        assert (await peer.ended(peer.call("Echo", b"x"))).messages == [(False, b"x")]

    async def test_pings_are_counted(self, raw):
        for _ in range(4):
            raw.feed(frame(PING, payload=bytes(8)))

        assert ends_calmly(raw)

    async def test_streams_that_are_reset_at_once_are_counted(self, raw):
        number = 1
        while not raw.wire.closed and number < 40_000:
            raw.feed(request(number) + frame(RESET, 0, number, struct.pack(">I", 8)))
            number += 2

        assert ends_calmly(raw)
        assert number > 2 * 4096  # all calls that a client may have may end at once

    async def test_streams_that_make_the_server_reset_them_are_counted(self, raw):
        number = 1
        while not raw.wire.closed and number < 40_000:
            raw.feed(request(number) + frame(WINDOW, 0, number, bytes(4)))
            number += 2

        assert raw.wire.closed

    async def test_headers_without_an_end_are_refused(self, raw):
        raw.feed(request(1, flags=0))
        for _ in range(20):
            raw.feed(frame(CONTINUATION, 0, 1, b""))

        assert raw.wire.closed

    async def test_headers_that_unpack_to_megabytes_are_refused(self, raw):
        block = Encoder().encode([*REQUEST, ("x", "y" * 4000)], huffman=False)
        repeated = b"\xbe" * 10_000  # the newest entry of the table, ten thousand times

        raw.feed(frame(HEADERS, END_HEADERS, 1, block + repeated))

        assert 1 in resets(raw)
        raw.feed(request(3))
        assert 3 not in resets(raw)

    async def test_calls_are_limited_to_the_announced_number(self, raw):
        for number in range(1, 2 * 4096, 2):
            raw.feed(request(number))
        assert not raw.wire.closed

        raw.feed(request(2 * 4096 + 1))

        assert raw.wire.closed

    async def test_a_busy_client_is_no_flood(self, peer):
        for number in range(3000):
            assert peer.call("Echo", b"%d" % number).messages[0][1] == b"%d" % number
            if number % 3 == 0:
                peer.h2.ping(bytes(8))
            if number % 5 == 0:
                peer.h2.reset_stream(peer.open("Later"))
            peer.exchange()

        assert peer.goaway is None


class TestPings:
    async def test_a_ping_is_answered(self, peer):
        heard = []
        peer.heard = heard.append

        peer.h2.ping(b"whatever")
        peer.exchange()

        assert [each.ping_data for each in heard if isinstance(each, PingAckReceived)] == [
            b"whatever"
        ]

    async def test_too_many_end_the_connection(self, peer):
        for _ in range(4):
            peer.h2.ping(bytes(8))
            peer.exchange()

        code, _, text = peer.goaway
        assert (code, text) == (ENHANCE_YOUR_CALM, b"too_many_pings")
        assert peer.wire.closed

    async def test_data_of_the_server_makes_up_for_them(self, peer):
        for _ in range(20):
            peer.h2.ping(bytes(8))
            peer.h2.ping(bytes(8))
            peer.call("Echo")

        assert peer.goaway is None

    @pytest.mark.parametrize(
        "options",
        [
            {"grpc_http2_max_ping_strikes": 0},
            {
                "grpc_http2_min_recv_ping_interval_without_data": 0,
                "grpc_keepalive_permit_without_calls": True,
            },
        ],
        ids=["any number of strikes", "no interval"],
    )
    async def test_options_allow_more(self, connect, options):
        peer = connect(**options)

        for _ in range(20):
            peer.h2.ping(bytes(8))
            peer.exchange()

        assert peer.goaway is None

    def pings(self, peer, counts=lambda: True):
        found = []
        heard = peer.heard

        def hear(event):
            if isinstance(event, PingReceived) and counts():
                found.append(event)
            heard(event)

        peer.heard = hear
        return found

    async def test_an_idle_client_gets_a_ping(self, connect):
        peer = connect(grpc_keepalive_time=20, grpc_keepalive_permit_without_calls=True)
        pings = self.pings(peer)

        await peer.until(lambda: pings)

        assert peer.goaway is None

    async def test_one_that_does_not_answer_is_given_up(self, connect, service):
        peer = connect(grpc_keepalive_time=20, grpc_keepalive_timeout=30)
        peer.call("Later")

        while not peer.wire.closed:
            await asyncio.sleep(0.001)

        assert b"keepaliv" in peer.wire.take()

    async def test_without_calls_only_an_option_sends_pings(self, connect):
        peer = connect(grpc_keepalive_time=1, grpc_keepalive_timeout=20_000)
        pings = self.pings(peer)
        answer = peer.call("Later", grpc_timeout="60m")
        before = len(pings)
        await peer.ended(answer)

        assert before == 0

    async def test_no_more_than_so_many_without_data(self, connect):
        peer = connect(
            grpc_keepalive_time=2,
            grpc_keepalive_timeout=20_000,
            grpc_keepalive_permit_without_calls=True,
            grpc_http2_max_pings_without_data=3,
        )
        clock = peer.call("Later", grpc_timeout="100m")
        # The response is data: pings after it are counted anew.
        pings = self.pings(peer, counts=lambda: not clock.ended)
        await peer.ended(clock)

        assert 0 < len(pings) <= 3


class TestAge:
    async def test_an_old_connection_takes_no_new_calls_and_ends_with_the_last(
        self, connect, service
    ):
        peer = connect(grpc_max_connection_age=30)
        answer = peer.call("Later")

        await peer.until(lambda: peer.goaway is not None and peer.goaway[1] < 2**31 - 1)
        assert not peer.wire.closed
        service.waiting[0][2](b"in the end")

        await peer.ended(answer)
        assert answer.messages == [(False, b"in the end")]
        await peer.until(lambda: peer.wire.closed)
        assert peer.goaway[0] == 0

    async def test_the_end_is_announced_before(self, connect):
        peer = connect(grpc_max_connection_age=30)

        await peer.until(lambda: peer.wire.closed)

        assert [last for _, last, _ in peer.goaways] == [2**31 - 1, 0]

    async def test_calls_that_take_longer_than_the_grace_are_cut_off(self, connect, service):
        peer = connect(grpc_max_connection_age=20, grpc_max_connection_age_grace=20)
        answer = peer.call("Later")

        await peer.until(lambda: peer.wire.closed)

        assert answer.status == 14
        assert service.waiting[0][1].cancelled


class TestStop:
    @pytest.fixture
    async def stopping(self, port, connect):
        """A port, a client of it, and an event for the end of its last connection."""
        shared = port()
        return shared, connect(to=shared), asyncio.Event()

    async def test_a_quiet_connection_ends_at_once(self, stopping):
        shared, peer, gone = stopping

        shared.close(gone.set)

        assert peer.wire.closed and not gone.is_set()
        peer.connection.connection_lost(None)
        assert gone.is_set()

    async def test_calls_in_progress_end_well_and_new_ones_are_not_taken(self, stopping, service):
        shared, peer, gone = stopping
        answer = peer.call("Later")

        shared.close(gone.set)
        late = frame(HEADERS, END_HEADERS | END_STREAM, 3, Encoder().encode(REQUEST))
        peer.feed(late)
        assert len(service.waiting) == 1 and not peer.wire.closed
        service.waiting[0][2](b"well")

        await peer.ended(answer)
        assert answer.messages == [(False, b"well")]
        assert peer.goaway[:2] == (0, 1)
        assert peer.wire.closed

    async def test_those_that_take_too_long_are_cut_off(self, stopping, service):
        shared, peer, gone = stopping
        answer = peer.call("Later")
        shared.close(gone.set)

        shared.cut_off()
        peer.exchange()

        assert answer.status == 14
        assert service.waiting[0][1].cancelled and peer.wire.closed

    async def test_a_connection_that_comes_too_late_is_refused(self, stopping, stranger):
        shared, _, gone = stopping
        shared.close(gone.set)

        late = stranger(to=shared)

        assert late.wire.aborted


class TestTls:
    @pytest.mark.parametrize("protocol", ["h2", "http/1.1", None])
    async def test_only_clients_that_agree_on_http2_are_served(self, stranger, protocol):
        class Secure:
            def selected_alpn_protocol(self):
                return protocol

        peer = stranger(ssl_object=Secure())

        assert peer.wire.aborted == (protocol != "h2")
