"""Calls of the native engine: requests, refusals and responses."""

import asyncio
import base64
import gzip
import struct
import sys
import time
import urllib.parse
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import CoreError, Kind, internal
from frontends.grpc.method import UnaryMethod

OK, UNKNOWN, INVALID, DEADLINE, EXHAUSTED, UNIMPLEMENTED, INTERNAL = 0, 2, 3, 4, 8, 12, 13
PATH = "/test.Service/"


class TestUnary:
    @pytest.mark.parametrize("method", ["Echo", "Task"])
    @pytest.mark.parametrize("message", [b"", b"x", b"abc" * 1000], ids=len)
    async def test_a_message_comes_back(self, peer, method, message):
        answer = await peer.ended(peer.call(method, message))

        assert answer.messages == [(False, message)]
        assert (answer.status, answer.text) == (OK, "")
        assert answer.headers[":status"] == "200"
        assert answer.headers["content-type"] == "application/grpc"

    async def test_an_answer_at_once_leaves_with_the_input_in_one_write(self, peer):
        peer.call("Echo")
        before = len(peer.wire.writes)

        first, second = peer.open("Echo"), peer.open("Echo")
        for number in (first, second):
            peer.h2.send_data(number, b"\0\0\0\0\1x", end_stream=True)
        peer.feed(peer.h2.data_to_send())

        assert len(peer.wire.writes) == before + 1
        peer.exchange()
        assert peer.answers[first].messages == peer.answers[second].messages == [(False, b"x")]

    async def test_answers_of_one_turn_of_the_loop_leave_in_one_write(self, peer, service):
        answers = [peer.call("Later", b"%d" % number) for number in range(10)]
        before = len(peer.wire.writes)

        for request, _, done in service.waiting:
            done(request)
        assert len(peer.wire.writes) == before

        await peer.until(lambda: all(answer.ended for answer in answers))
        assert len(peer.wire.writes) == before + 1
        assert [answer.messages[0][1] for answer in answers] == [b"%d" % n for n in range(10)]

    async def test_a_message_in_parts_arrives_as_one(self, peer, service):
        answer = peer.call("Later")

        whole = np.arange(6, dtype=np.float32).reshape(2, 3)
        service.waiting[0][2]([b"head", memoryview(b""), whole, bytearray(b"tail")])

        await peer.ended(answer)
        assert answer.messages == [(False, b"head" + whole.tobytes() + b"tail")]

    async def test_only_the_first_answer_counts(self, peer, service):
        answer = peer.call("Later")

        done = service.waiting[0][2]
        done(b"first")
        done(b"second")
        done(internal("third"))

        await peer.ended(answer)
        assert (answer.messages, answer.status) == ([(False, b"first")], OK)

    async def test_a_refusal_is_a_status_alone(self, peer, service):
        answer = peer.call("Later")

        service.waiting[0][2](CoreError(Kind.INVALID, "100 % wrong: \u2603"))

        await peer.ended(answer)
        assert answer.headers["grpc-status"] == str(INVALID)
        assert answer.text == "100 %25 wrong: %E2%98%83"
        assert not answer.data and not answer.trailers

    @pytest.mark.parametrize("with_task", [False, True])
    async def test_an_unexpected_error_is_internal_and_logged(self, connect, with_task, caplog):
        def begin(request, call, done):
            raise ZeroDivisionError("nobody thought of it")

        async def function(request, call):
            raise ZeroDivisionError("nobody thought of it")

        method = UnaryMethod(PATH + "Broken", "", function, begin=None if with_task else begin)
        peer = connect(method)

        answer = await peer.ended(peer.call("Broken"))

        assert answer.status == INTERNAL
        assert answer.text == "Broken failed: ZeroDivisionError; see the log"
        assert "nobody thought of it" in caplog.text

    async def test_messages_in_pieces_are_put_together(self, peer):
        number = peer.open("Echo")
        for byte in struct.pack(">BI", 0, 5) + b"hello":
            peer.send_bytes(number, bytes([byte]))
        assert not peer.answers[number].data
        peer.end(number)

        assert peer.answers[number].messages == [(False, b"hello")]

    @given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
    @settings(
        max_examples=50,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    async def test_texts_of_statuses_survive(self, peer, service, text):
        answer = peer.call("Later")

        service.waiting.pop()[2](internal(text))

        await peer.ended(answer)
        assert all(" " <= letter <= "~" for letter in answer.text)
        assert urllib.parse.unquote(answer.text) == text

    @pytest.mark.parametrize("method", ["Echo", "Task", "Chat"])
    async def test_a_call_leaves_no_garbage(self, peer, service, method):
        await peer.ended(peer.call(method, b"x"))
        for _ in range(5):
            await asyncio.sleep(0)

        # This name and the argument of getrefcount: the engine has forgotten it, and no circle holds it.
        call = service.calls.pop()
        assert sys.getrefcount(call) == 2


class TestWhatIsNoCall:
    @pytest.mark.parametrize(
        ("headers", "http"),
        [
            ({"content_type": "application/json"}, 415),
            ({"content_type": "application/grpcx"}, 415),
            ({"content_type": None}, 415),
            ({"method": "GET"}, 405),
        ],
    )
    async def test_other_requests_have_an_http_status(self, peer, headers, http):
        answer = await peer.ended(peer.call("Echo", **headers))

        assert answer.headers[":status"] == str(http)

    @pytest.mark.parametrize("kind", ["application/grpc+proto", "application/grpc;v=1"])
    async def test_the_content_type_may_have_a_suffix(self, peer, kind):
        assert (await peer.ended(peer.call("Echo", content_type=kind))).status == OK

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({"te": None}, UNKNOWN),
            ({"grpc_timeout": "1"}, INTERNAL),
            ({"grpc_timeout": "123456789S"}, INTERNAL),
            ({"grpc_timeout": "-1S"}, INTERNAL),
            ({"grpc_timeout": "1x"}, INTERNAL),
            ({"grpc_encoding": "zstd"}, UNIMPLEMENTED),
            ({"key_bin": "a=b"}, INTERNAL),
            ({"key_bin": "a"}, INTERNAL),
            ({"large": "x" * 16_400}, EXHAUSTED),
        ],
    )
    async def test_malformed_headers_have_a_status(self, peer, headers, status):
        answer = await peer.ended(peer.call("Echo", **headers))

        assert (answer.headers[":status"], answer.status) == ("200", status)
        assert answer.text

    @pytest.mark.parametrize("path", ["/test.Service/Nothing", "/", "/test.Service/Ech"])
    async def test_an_unknown_method_is_unimplemented(self, peer, path):
        assert (await peer.ended(peer.call(path))).status == UNIMPLEMENTED

    @pytest.mark.parametrize(
        ("data", "status"),
        [
            (b"", INTERNAL),
            (b"\0\0\0", INTERNAL),
            (b"\0\0\0\0\5abc", INTERNAL),
            (b"\2\0\0\0\1a", INTERNAL),
            (b"\0\0\0\0\1a" * 2, INTERNAL),
            (b"\1\0\0\0\1a", INTERNAL),
            (b"\0\xff\xff\xff\xff", EXHAUSTED),
        ],
        ids=["none", "half a head", "half", "flag", "two", "packed by nothing", "too large"],
    )
    async def test_a_call_without_its_one_message_is_refused(self, peer, service, data, status):
        number = peer.open("Echo")
        peer.send_bytes(number, data, end=True)

        answer = await peer.ended(peer.answers[number])
        assert answer.status == status
        assert not service.calls

    async def test_a_refused_call_gets_a_reset_to_send_no_more(self, peer):
        number = peer.open("Nothing")
        peer.exchange()

        answer = peer.answers[number]
        assert (answer.status, answer.ended, answer.reset) == (UNIMPLEMENTED, True, 0)


class TestMetadata:
    async def test_the_method_gets_the_clients_bytes(self, peer, service):
        peer.call("Later", b"", ("name", "a"), ("name", "b"), ("user-agent", "test"))

        call = service.waiting[0][1]
        assert list(call.metadata) == [("name", "a"), ("name", "b"), ("user-agent", "test")]
        assert call.value("name") == "b"

    async def test_it_can_be_called_during_the_whole_call(self, peer, service):
        peer.call("Later", b"", ("name", "late"))
        _, call, done = service.waiting[0]
        peer.call("Later", b"", ("name", "other"))

        assert call.value("name") == "late"
        done(b"")
        assert call.value("name") == "late"

    async def test_after_the_call_there_is_none(self, peer, service):
        peer.call("Echo", b"", ("name", "gone"))
        peer.exchange()

        assert list(service.calls[0].metadata) == []

    @pytest.mark.parametrize("padded", [True, False])
    @pytest.mark.parametrize("value", [b"", b"\0", b"\xff\xfe", b"abc", bytes(range(256))], ids=len)
    async def test_binary_values_are_bytes(self, peer, service, value, padded):
        encoded = base64.b64encode(value).decode()

        peer.call("Later", b"", ("key-bin", encoded if padded else encoded.rstrip("=")))

        assert service.waiting[0][1].metadata[0] == ("key-bin", value)

    async def test_binary_values_may_be_joined(self, peer, service):
        peer.call("Later", b"", ("key-bin", "YQ==,Yg, Yw"))

        assert [value for _, value in service.waiting[0][1].metadata] == [b"a", b"b", b"c"]


class TestEnds:
    async def test_a_call_that_is_reset_is_cancelled(self, peer, service):
        number = peer.open("Later")
        peer.send(number, b"x", end=True)
        call = service.waiting[0][1]
        heard = []
        call.on_cancel(lambda: heard.append(True))

        peer.h2.reset_stream(number, error_code=8)
        peer.exchange()

        assert call.cancelled and heard == [True]
        service.waiting[0][2](b"too late")
        peer.exchange()
        assert peer.call("Echo", b"well").messages == [(False, b"well")]

    async def test_a_call_that_is_reset_before_its_message_is_whole_never_begins(
        self, peer, service
    ):
        number = peer.open("Later")
        peer.send_bytes(number, b"\0\0\0\0\5ab")
        peer.h2.reset_stream(number)
        peer.exchange()

        assert not service.waiting

    async def test_calls_of_a_lost_connection_are_cancelled(self, peer, service):
        peer.call("Later")
        peer.call("Later")

        peer.connection.connection_lost(ConnectionResetError())

        assert all(call.cancelled for _, call, _ in service.waiting)
        service.waiting[0][2](b"too late")

    async def test_a_deadline_ends_the_call(self, peer, service):
        answer = await peer.ended(peer.call("Later", grpc_timeout="30m"))

        assert (answer.status, answer.text) == (DEADLINE, "Deadline Exceeded")
        assert service.waiting[0][1].cancelled
        service.waiting[0][2](b"too late")

    async def test_a_deadline_that_is_past_never_meets_the_method_late(self, peer, service):
        answer = await peer.ended(peer.call("Later", grpc_timeout="0n"))

        assert answer.status == DEADLINE
        assert all(call.cancelled for _, call, _ in service.waiting)

    @pytest.mark.parametrize(
        ("timeout", "seconds"),
        [("2H", 7200), ("3M", 180), ("4S", 4), ("5000m", 5), ("6000000u", 6), ("99999999n", 0.1)],
    )
    async def test_the_method_sees_the_deadline(self, peer, service, timeout, seconds):
        before = time.monotonic_ns()
        peer.call("Later", grpc_timeout=timeout)
        after = time.monotonic_ns()

        deadline_ns = service.waiting[0][1].deadline_ns
        assert before <= deadline_ns - round(seconds * 1e9, -7) <= after + 1e7

    async def test_a_call_without_a_timeout_has_no_deadline(self, peer, service):
        peer.call("Later")

        assert service.waiting[0][1].deadline_ns == 0

    async def test_the_longest_timeout_is_no_overflow(self, peer, service):
        peer.call("Later", grpc_timeout="99999999H")

        assert service.waiting[0][1].deadline_ns > 0


class TestCompression:
    PACK = {"gzip": gzip.compress, "deflate": zlib.compress}
    UNPACK = {"gzip": gzip.decompress, "deflate": zlib.decompress}

    @pytest.mark.parametrize("name", ["gzip", "deflate"])
    @pytest.mark.parametrize("method", ["Echo", "Task"])
    @pytest.mark.parametrize("size", [0, 10, 5_000_000])
    async def test_compressed_requests_are_unpacked(self, peer, name, method, size):
        packed = self.PACK[name](bytes(size))

        answer = await peer.ended(peer.call(method, packed, compressed=1, grpc_encoding=name))

        assert answer.messages == [(False, bytes(size))]

    @pytest.mark.parametrize("name", ["gzip", "deflate"])
    @pytest.mark.parametrize(
        "harm", [lambda data: data[:-3], lambda data: data + b"x", lambda data: b"junk"]
    )
    async def test_broken_ones_are_refused(self, peer, service, name, harm):
        packed = harm(self.PACK[name](b"some text" * 10))

        answer = await peer.ended(peer.call("Echo", packed, compressed=1, grpc_encoding=name))

        assert answer.status == INTERNAL and "compressed message" in answer.text
        assert not service.calls

    @pytest.mark.parametrize("method", ["Echo", "Chat"])
    @pytest.mark.parametrize("size", [1001, 10_000_000])
    async def test_a_bomb_is_refused(self, connect, method, size):
        peer = connect(most_bytes=1000)

        answer = await peer.ended(
            peer.call(method, gzip.compress(bytes(size)), compressed=1, grpc_encoding="gzip")
        )

        assert answer.status == EXHAUSTED
        fine = peer.call("Echo", gzip.compress(bytes(1000)), compressed=1, grpc_encoding="gzip")
        assert (await peer.ended(fine)).messages == [(False, bytes(1000))]

    @pytest.mark.parametrize("method", ["Echo", "Task", "Chat"])
    @pytest.mark.parametrize("name", ["gzip", "deflate"])
    @pytest.mark.parametrize("size", [1000, 1_000_000])
    async def test_responses_are_packed_as_the_client_takes_them(self, connect, method, name, size):
        peer = connect(level=6)

        answer = await peer.ended(
            peer.call(method, bytes(size), grpc_accept_encoding=f"identity, {name}")
        )

        assert answer.headers["grpc-encoding"] == name
        ((compressed, data),) = answer.messages
        assert compressed and self.UNPACK[name](data) == bytes(size)

    @pytest.mark.parametrize(
        ("method", "level", "accepted"),
        [("Echo", 0, "gzip"), ("Echo", 6, "identity, br"), ("Later", 6, "gzip")],
        ids=["the server compresses nothing", "the client takes none", "not this method"],
    )
    async def test_other_responses_are_not(self, connect, service, method, level, accepted):
        peer = connect(level=level)
        answer = peer.call(method, bytes(1000), grpc_accept_encoding=accepted)
        for request, _, done in service.waiting:
            done(request)

        await peer.ended(answer)
        assert answer.messages == [(False, bytes(1000))]
        assert "grpc-encoding" not in answer.headers

    async def test_data_that_would_grow_is_not_compressed(self, connect):
        peer = connect(level=9)

        answer = await peer.ended(peer.call("Echo", b"x", grpc_accept_encoding="gzip"))

        assert answer.messages == [(False, b"x")]


async def test_a_response_beyond_the_limit_is_a_status(connect, service):
    peer = connect(most_bytes=1000)
    answer = peer.call("Later")

    service.waiting[0][2](bytes(1001))

    await peer.ended(answer)
    assert answer.status == EXHAUSTED
    assert answer.text == "Sent message larger than max (1001 vs. 1000)"
