"""Bodies above --kept-body-bytes: when another server may get them.

One that passes piece by piece is gone once a server has a part of it. One that names its model is kept whole.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from routing.hedging import Slow
from routing.requests import ask, until
from routing.running import good, refuse, reset

INFER = "/v2/models/m/infer"
CHAT = "/v1/chat/completions"
SIZE = 300_000
LIMITS = {"kept_body_bytes": 1000}


def chat():
    return {"messages": "x" * SIZE, "model": "m"}


def pieces():
    return b'{"inputs": [], "id": "%b"}' % (b"x" * SIZE)


@pytest.fixture
def bad_and_good(scripted, route):
    def make(respond, **options):
        bad, fine = scripted(respond), scripted(good)
        return bad, fine, route([bad.name, fine.name], LIMITS, **options)

    return make


@pytest.mark.parametrize("respond", [reset, refuse])
def test_a_body_of_pieces_reaches_one_server(bad_and_good, respond):
    bad, fine, router = bad_and_good(respond)

    statuses = [ask(router.port, INFER, pieces()).status for _ in range(16)]

    assert len(bad.requests) > 0
    assert statuses.count(200) == len(fine.requests)
    assert len(bad.requests) + len(fine.requests) == 16


def test_a_body_of_pieces_whose_server_is_lost_within_it_reaches_no_other_one(scripted, route, raw):
    servers = [scripted(good), scripted(good)]
    for each in servers:
        each.early = b"nonsense\r\n\r\n"  # as soon as the head has come
    router = route([each.name for each in servers], LIMITS)
    head = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (INFER.encode(), SIZE)

    for _ in range(4):
        client = raw(router.port)
        client.send(head + bytes(5000))
        assert client.receive()[0] == 502

    assert router.metric("core_router_retries") == 0
    assert router.metric("core_router_lost") == 4


@pytest.mark.parametrize("respond", [reset, refuse])
def test_a_body_that_names_its_model_reaches_another_server_whole(bad_and_good, respond):
    bad, _fine, router = bad_and_good(respond)

    replies = [ask(router.port, CHAT, chat()) for _ in range(16)]

    assert len(bad.requests) > 0
    assert {each.status for each in replies} == {200}
    assert {len(each.body) > SIZE for each in replies} == {True}
    assert router.metric("core_router_kept_bytes") == 0


@pytest.mark.parametrize(("path", "body"), [(CHAT, chat()), (INFER, pieces())])
def test_a_body_of_which_nothing_was_sent_reaches_another_server(scripted, route, path, body):
    gone, fine = scripted(good), scripted(good)
    router = route([gone.name, fine.name], LIMITS, check_s=300)
    gone.close()

    assert {ask(router.port, path, body).status for _ in range(8)} == {200}
    assert len(fine.requests) == 8


@pytest.mark.parametrize(("size", "copies"), [(100, 1), (SIZE, 0)])
def test_only_small_bodies_have_a_second_copy(copying, thread, size, copies):
    slow = Slow()
    servers, router = copying(slow, slow, limits=LIMITS)
    with ThreadPoolExecutor(1) as pool:
        body = {"model": "m", "messages": "x" * size}
        reply = pool.submit(ask, router.port, CHAT, body)
        until(lambda: sum(len(each.requests) for each in servers) == 1 + copies)
        if not copies:
            time.sleep(0.3)  # ten times the delay of a copy
        thread.loop.call_soon_threadsafe(slow.goes_on.set)

        assert reply.result().body == b"slow"
    assert sum(len(each.requests) for each in servers) == 1 + copies
