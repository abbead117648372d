"""Clients over gRPC that send in small pieces, do not go on, or do not read: what they cost the router."""

import socket
import time
import tracemalloc

from core_router.grpc.messages import MessageScanner
from core_router.grpc.native.link import ClientLink, Flusher
from core_router.grpc.statuses import HEAD
from routing.grpc_servers import V2, ScriptedGrpc, response
from routing.http2 import DATA, HEADERS, PREFACE, SETTINGS, Loop, Transport, frame, kinds
from routing.opened_streams import Opened, answers, asks, router_of
from routing.requests import PATIENCE_S
from routing.running import good

INFER = (V2 + "ModelInfer").encode()
NO_WINDOW = b"\0\4\0\0\0\0"  # the setting of a client that takes no responses


def text(value):
    return bytes([len(value)]) + value


def head(stream):
    """Return the head of a call of ModelInfer, which goes on."""
    # POST, http, authority, path, and two names that have no number
    block = b"\x83\x86\x01\x01a\x04" + text(INFER)
    block += b"\0" + text(b"content-type") + text(b"application/grpc")
    block += b"\0" + text(b"te") + text(b"trailers")
    return frame(HEADERS, stream, block, flags=4)


class Client:
    """A connection of a client with a router that has no connection to its servers."""

    def __init__(self, router, flusher, loop, settings=b""):
        self.router, self.transport = router, Transport()
        self._loop = loop
        self.link = ClientLink(router.grpc, flusher)
        self.link.connection_made(self.transport)
        self.send(PREFACE + frame(SETTINGS, payload=settings))
        self.send(frame(SETTINGS, flags=1))  # it has the router's settings

    def send(self, data):
        self.link.get_buffer(-1)[: len(data)] = data
        self.link.buffer_updated(len(data))
        self._loop.run()

    def ended(self):
        """Return the streams that have a head of a response."""
        return [stream for kind, stream in kinds(self.transport.sent) if kind == HEADERS]


def client_of(**limits):
    loop = Loop()
    return Client(router_of(**limits), Flusher(loop), loop)


# small pieces ---------------------------------------------------------------


def test_a_byte_more_costs_no_copy_of_what_was_kept_before():
    client = client_of(kept_body_bytes=32 << 20)
    client.send(head(1))
    for _ in range(80):
        client.send(frame(DATA, 1, bytes(200_000)))
    began_s = time.thread_time()

    for _ in range(2000):
        client.send(frame(DATA, 1, b"a"))

    assert time.thread_time() - began_s < 1
    assert client.router.kept_bytes == 80 * 200_000 + 2000


def test_small_pieces_of_a_message_take_about_their_bytes():
    scanner = MessageScanner()
    scanner.feed(b"\0" + (1 << 30).to_bytes(4, "big"))
    tracemalloc.start()

    for _ in range(20_000):
        scanner.feed(b"ab"[:])
        scanner.feed(bytes(3))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert scanner.size == 5 + 20_000 * 5
    assert used < 3 * scanner.size


def test_pieces_of_all_sizes_become_their_message():
    content = bytes(range(256)) * 1000
    sent = b"\0" + len(content).to_bytes(4, "big") + content
    scanner, at, found = MessageScanner(), 0, []
    for size in [1, 2, 20_000, 5, 7, 16_384, 16_383, 1, len(sent)]:
        found += scanner.feed(sent[at : at + size])
        at += size

    assert found == [sent] and scanner.size == 0


# clients that do not go on --------------------------------------------------


def test_a_call_ends_whose_message_stops():
    client = client_of(client_s=30.0)
    router = client.router
    router.now_s = 1000.0
    client.send(head(1) + frame(DATA, 1, bytes(100)) + head(3) + frame(DATA, 3, bytes(100)))
    assert router.kept_bytes == 200

    router.now_s = 1020.0
    client.send(frame(DATA, 1, bytes(70_000)) + frame(DATA, 3, b"a"))
    router.grpc.tick(1030.0)
    client.send(b"")
    assert client.ended() == []
    router.grpc.tick(1031.0)
    client.send(b"")
    assert client.ended() == [3]  # one byte is not enough to go on
    router.grpc.tick(1051.0)
    client.send(b"")

    assert client.ended() == [3, 1] and router.kept_bytes == 0


def test_a_call_whose_message_has_come_may_wait():
    client = client_of(client_s=30.0)
    client.router.now_s = 1000.0
    client.send(head(1) + frame(DATA, 1, b"\0\0\0"))
    client.send(frame(DATA, 1, b"\0\0", flags=1))
    client.router.grpc.tick(2000.0)
    client.send(b"")

    assert client.ended() == []


# many small messages --------------------------------------------------------


def test_many_messages_of_one_read_leave_the_loop_to_others():
    router, loop = router_of(), Loop()
    streams = [Opened(router, loop) for _ in range(30)]
    for found in streams:
        found.stream.received(None, b"".join(asks(each) for each in range(200)), None, False)

    taken = [len(found.stream._turns) for found in streams]
    assert taken == [100] * 10 + [0] * 20
    streams[-1].send()
    assert [found.waiting() for found in streams] == [[str(each) for each in range(200)]] * 30


def test_a_stream_ends_after_all_messages_of_its_last_read():
    found = Opened(router_of())
    found.stream.received(None, b"".join(asks(each) for each in range(250)), None, True)
    assert len(found.stream._turns) == 100

    found.loop.run()
    found.answer(*[answers(each) for each in range(250)])
    (reached,) = found.reached
    reached.answered(reached._attempt, None, None, None, True)

    assert len(found.client.sent) == 250 and found.client.status is not None


# clients that do not read ---------------------------------------------------


def test_the_connection_with_the_most_unread_bytes_is_closed():
    router, loop = router_of(kept_bytes=1_000_000), Loop()
    flusher = Flusher(loop, 1_000_000, router.grpc._close_unread)
    few, most, some = (Client(router, flusher, loop, NO_WINDOW) for _ in range(3))
    reading = Client(router, flusher, loop)
    for client, size in ((few, 10_000), (most, 700_000), (some, 280_000), (reading, 60_000)):
        client.send(head(1) + frame(DATA, 1, b"\0"))
        client.link.respond(1, HEAD, False)
        client.link.write(1, bytes(size))
        loop.run()
    clients = (few, most, some, reading)
    assert not any(each.transport.is_aborted for each in clients)
    assert [each.link.unread() for each in clients] == [10_000, 700_000, 280_000, 0]

    few.link.write(1, bytes(20_000))
    loop.run()

    assert [each.transport.is_aborted for each in clients] == [False, True, False, False]
    most.link.connection_lost(None)
    some.link.write(1, bytes(500_000))  # there is room again
    loop.run()
    assert not some.transport.is_aborted


def test_a_client_that_reads_no_responses_loses_its_connection(scripted, route):
    server = ScriptedGrpc()
    large = response(text="a" * 1_000_000).SerializeToString()
    server.respond = lambda data, context: large
    router = route([f"{scripted(good).name}:{server.port}"], {"kept_bytes": 3_000_000})
    with socket.create_connection(("127.0.0.1", router.grpc_port), PATIENCE_S) as client:
        client.sendall(PREFACE + frame(SETTINGS, payload=NO_WINDOW))
        for at in range(8):
            client.sendall(head(2 * at + 1) + frame(DATA, 2 * at + 1, asks(at), flags=1))
        try:
            while client.recv(65536):
                pass
        except ConnectionResetError:
            pass
    server.close()
