"""Clients over gRPC that send in small pieces, do not go on, or do not read: what they cost the router."""

import socket
import time
import tracemalloc
from itertools import count, islice

from core_router.grpc import unread
from core_router.grpc.messages import MessageScanner
from core_router.grpc.native.blocks import block_of
from core_router.grpc.native.link import ClientLink, Flusher
from core_router.grpc.statuses import HEAD
from routing.grpc_servers import V2, ScriptedGrpc, request, response
from routing.http2 import (
    DATA,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    SETTINGS,
    WINDOW,
    Loop,
    Transport,
    frame,
    kinds,
)
from routing.opened_streams import Opened, answers, asks, packed, router_of
from routing.requests import PATIENCE_S
from routing.running import good

INFER = (V2 + "ModelInfer").encode()
NO_WINDOW = b"\0\4\0\0\0\0"  # the setting of a client that takes no responses


def text(value):
    return bytes([len(value)]) + value


def head(stream, path=INFER, more=b""):
    """Return the head of a call, which goes on. more: fields."""
    # POST, http, authority, path, and two names that have no number
    block = b"\x83\x86\x01\x01a\x04" + text(path)
    block += b"\0" + text(b"content-type") + text(b"application/grpc")
    block += b"\0" + text(b"te") + text(b"trailers")
    return frame(HEADERS, stream, block + more, flags=4)


class Client:
    """A connection of a client with a router that has no connection to its servers."""

    def __init__(self, router, flusher, loop, settings=b""):
        self.router, self.transport = router, Transport()
        self.loop = loop
        self.link = ClientLink(router.grpc, flusher)
        self.link.connection_made(self.transport)
        self.send(PREFACE + frame(SETTINGS, payload=settings))
        self.send(frame(SETTINGS, flags=1))  # it has the router's settings

    def send(self, data):
        self.link.get_buffer(-1)[: len(data)] = data
        self.link.buffer_updated(len(data))
        self.loop.run()

    def ended(self):
        """Return the streams that have a head of a response."""
        return [stream for kind, stream in kinds(self.transport.sent) if kind == HEADERS]


def client_of(*models, **limits):
    loop = Loop()
    return Client(router_of(*models, **limits), Flusher(loop), loop)


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


def test_the_time_of_a_head_does_not_count_for_its_message():
    client = client_of(client_s=30.0)
    client.router.now_s = 1000.0
    client.send(head(1))
    client.router.now_s = 1020.0
    client.send(frame(DATA, 1, b""))
    client.send(frame(DATA, 1, b"\0"))
    ended = []
    for now_s in (1040.0, 1051.0):
        client.router.grpc.tick(now_s)
        client.send(b"")
        ended.append(client.ended())

    assert ended == [[], [1]]


def test_a_call_whose_message_has_come_may_wait():
    client = client_of(client_s=30.0)
    client.router.now_s = 1000.0
    client.send(head(1) + frame(DATA, 1, b"\0\0\0"))
    client.send(frame(DATA, 1, b"\0\0", flags=1))
    client.router.grpc.tick(2000.0)
    client.send(b"")

    assert client.ended() == []


def test_a_call_ends_of_which_only_the_head_comes():
    client = client_of(client_s=30.0)
    client.router.now_s = 1000.0
    client.send(head(1))
    client.send(head(3) + head(5, b"/other.Service/Method"))
    client.send(frame(DATA, 3, b"\0\0\0\0\0", flags=1))
    client.router.grpc.tick(1031.0)
    client.send(b"")

    assert client.ended() == [1]


def test_a_head_waits_for_its_message_also_while_the_router_keeps_too_much():
    client = client_of()
    client.router.kept_bytes = 1 << 30
    client.send(head(1))

    (server,) = client.router.table.servers.values()
    assert server.links is None and client.ended() == []
    client.send(frame(DATA, 1, b"\0"))
    assert server.links is not None


def test_a_start_without_time_for_another_server_begins_no_sequence():
    client = client_of("m", "m")
    sequences, tried = client.router.sequences, []

    def connect(pool):
        tried.append(len(sequences))
        pool.not_opened("no")

    client.router.grpc.connect = connect
    start = packed(request("m", sequence_id=7, sequence_start=True))
    client.send(head(1, more=b"\0" + text(b"grpc-timeout") + text(b"1n")))
    client.send(frame(DATA, 1, start, flags=1))

    assert tried == [1] and len(sequences) == 0 and client.ended() == [1]


def test_a_connection_is_idle_from_the_end_of_its_last_call_on():
    client = client_of(idle_s=75.0)
    loop = client.loop
    client.router.now_s = 900.0
    client.send(head(1) + frame(DATA, 1, b"\0\0\0\0\0", flags=1))
    client.router.grpc.tick(1000.0)
    client.link.respond(1, HEAD, True)
    loop.run()

    client.router.grpc.tick(1070.0)
    loop.run()
    assert GOAWAY not in [kind for kind, _ in kinds(client.transport.sent)]
    client.router.grpc.tick(1080.0)
    loop.run()
    assert GOAWAY in [kind for kind, _ in kinds(client.transport.sent)]


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


def closed_after(monkeypatch, seconds, each_10_s, *sizes, client_s=30.0):
    """Return after how many seconds each of some clients lost its connection; 0 for not at all.

    each_10_s   called with the clients
    sizes       bytes that wait for each; its window lets none leave
    """
    monkeypatch.setattr(unread, "MOST_BYTES", 1_000_000)
    router, loop = router_of(kept_bytes=0, client_s=client_s), Loop()
    flusher = Flusher(loop)
    clients, closed = [Client(router, flusher, loop, NO_WINDOW) for _ in sizes], [0] * len(sizes)
    for client, size in zip(clients, sizes, strict=True):
        client.send(head(1) + frame(DATA, 1, b"\0"))
        client.link.respond(1, HEAD, False)
        client.link.write(1, bytes(size))
    for passed in range(0, seconds, 10):
        each_10_s(*clients)
        router.grpc.tick(1000.0 + passed)
        for at, client in enumerate(clients):
            if client.transport.is_aborted and not closed[at]:
                closed[at] = passed
                client.link.connection_lost(None)
    return closed


def test_only_clients_that_take_too_little_lose_their_connections(monkeypatch):
    def take(_silent, trickling, slow, draining):
        for client, size in ((trickling, 5000), (slow, 12_000)):
            window = size.to_bytes(4, "big")
            client.send(frame(WINDOW, 0, window) + frame(WINDOW, 1, window))
        # What has left the transport counts, not what it got.
        draining.transport.buffered = (draining.transport.buffered or 400_000) - 12_000

    sizes = 400_000, 450_000, 900_000, 200_000
    assert closed_after(monkeypatch, 200, take, *sizes) == [70, 70, 0, 0]


def test_frames_without_responses_do_not_keep_a_connection(monkeypatch):
    ids, large = count(3, 2), HEAD + block_of([(b"a", b"a" * 8000)])

    def ping(client):
        for id in islice(ids, 3):
            client.send(frame(PING, payload=bytes(8)) + frame(SETTINGS) + head(id))
            client.link.respond(id, large, True)

    assert closed_after(monkeypatch, 100, ping, 1_500_000) == [70]


def test_a_client_has_client_timeout_secs_if_that_is_more(monkeypatch):
    def nothing(client):
        pass

    assert closed_after(monkeypatch, 130, nothing, 1_500_000, client_s=90.0) == [100]


def test_bytes_in_transports_count_as_waiting(monkeypatch):
    def full(*clients):
        for each in clients:
            each.transport.buffered = 300_000

    assert sorted(closed_after(monkeypatch, 100, full, 0, 0, 0, 0)) == [0, 0, 0, 70]


def test_clients_that_take_no_bytes_keep_their_connections_while_there_is_room():
    client = client_of(client_s=30.0)
    client.send(head(1) + frame(DATA, 1, b"\0"))
    client.link.respond(1, HEAD, False)
    client.link.write(1, bytes(2_000_000))
    for now_s in (0.0, 100.0, 200.0):
        client.router.grpc.unread.tick(client.router.grpc.links, now_s, 30.0)

    assert client.link.unread() > 1_900_000 and not client.transport.is_aborted


def test_a_client_that_reads_no_responses_loses_its_connection(scripted, route, monkeypatch):
    monkeypatch.setattr(unread, "MOST_BYTES", 3_000_000)
    monkeypatch.setattr(unread, "LEAST_S", 0.1)
    server = ScriptedGrpc()
    large = response(text="a" * 1_000_000).SerializeToString()
    server.respond = lambda data, context: large
    router = route([f"{scripted(good).name}:{server.port}"], {"client_s": 0.1})
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
