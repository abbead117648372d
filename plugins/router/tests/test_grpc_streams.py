"""ModelStreamInfer through the router: one stream of a client, several servers."""

import time

import grpc
import numpy as np
import pytest
from core_router.choice.shares import Shares
from core_router.grpc.messages import MessageScanner, plain
from routing.requests import PATIENCE_S, until


def message(content):
    return b"\0" + len(content).to_bytes(4, "big") + content


@pytest.mark.parametrize("step", [1, 3, 7, 100])
def test_messages_are_found_whatever_the_pieces(step):
    sent = [message(b""), message(b"abc"), message(bytes(60))]
    data = b"".join(sent)
    scanner = MessageScanner()

    found = [
        each for at in range(0, len(data), step) for each in scanner.feed(data[at : at + step])
    ]

    assert found == sent and scanner.size == 0


def test_many_small_messages_are_found_in_one_pass():
    count = 200_000
    began_s = time.thread_time()

    found = MessageScanner().feed(bytes(5 * count))

    assert len(found) == count
    assert time.thread_time() - began_s < 2


def test_bytes_that_are_not_compressed_have_no_message():
    assert plain(b"\1\0\0\0\3abc", 100) == (b"", 0)


def values(answer):
    assert not answer.error_message, answer.error_message
    return np.frombuffer(answer.infer_response.raw_output_contents[0], np.float32).tolist()


def test_requests_for_a_model_stay_on_one_server_in_order(router, stream):
    found = stream(router)
    for x in range(50):
        found.send("who", float(x))

    answers = [values(found.receive()) for _ in range(50)]

    assert [x for x, _ in answers] == list(range(50))
    assert len({server for _, server in answers}) == 1
    found.end()
    assert list(found.call) == [] and found.call.code() is grpc.StatusCode.OK
    assert router.metric("core_router_in_flight") == 0


def test_one_stream_reaches_models_of_several_servers_in_order(router, stream):
    found = stream(router)
    for x in range(30):
        found.send(f"only_{x % 3}", float(x))

    assert [values(found.receive()) for _ in range(30)] == [[x, x % 3] for x in range(30)]


def test_a_stream_follows_the_shares_of_a_model(route, three, stream):
    names = [each.name for each in three]
    router = route([each.address for each in three], shares=Shares.of({"who": {names[1]: 100}}))
    found = stream(router)
    found.send("only_0", 1.0)  # without shares, `who` would stay on this server
    assert values(found.receive())[1] == 0

    for _ in range(5):
        found.send("who", 1.0)

    assert [values(found.receive())[1] for _ in range(5)] == [1] * 5


def test_sequences_of_a_stream_stay_on_their_servers(router, stream):
    found = stream(router)
    keys = range(1, 9)
    for step in range(1, 5):
        for key in keys:
            found.send(
                "sums",
                float(step),
                sequence_id=key,
                sequence_start=step == 1,
                sequence_end=step == 4,
            )

    answers = [values(found.receive()) for _ in range(32)]

    for at, _ in enumerate(keys):
        of_one = answers[at::8]
        assert [total for total, _ in of_one] == [1, 3, 6, 10]
        assert len({server for _, server in of_one}) == 1
    assert len({server for _, server in answers}) > 1


def test_an_error_is_a_response_of_the_stream(router, stream):
    found = stream(router)
    found.send("who", 1.0)
    found.send("unknown", 1.0, id="7")
    found.send("who", 2.0)

    first, failed, second = [found.receive() for _ in range(3)]

    assert (values(first)[0], values(second)[0]) == (1, 2)
    assert "unknown model" in failed.error_message and failed.infer_response.id == "7"


def test_a_large_message_passes(router, stream):
    found = stream(router)
    found.send("who", *range(1_000_000))

    assert len(values(found.receive())) == 1_000_001
    found.send("who", 1.0)
    assert values(found.receive())[0] == 1
    found.end()
    assert list(found.call) == []
    assert router.metric("core_router_kept_bytes") == 0


def test_a_stream_that_a_client_cancels_is_cancelled_at_the_servers(router, three, stream):
    for each in three:
        each.gate.clear()
    found = stream(router)
    found.send("gated", 1.0)
    until(lambda: router.metric("core_router_in_flight", model="gated") == 1)

    found.call.cancel()

    until(lambda: router.metric("core_router_in_flight", model="gated") == 0)
    for each in three:
        each.gate.set()


def test_an_idle_stream_ends_with_the_router(route, three, stream):
    router = route([each.address for each in three])
    found = stream(router)
    found.send("who", 1.0)
    found.receive()

    router.drain().result(PATIENCE_S)

    with pytest.raises(grpc.RpcError) as error:
        found.receive()
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
