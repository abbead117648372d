"""The fast path between a transport, a server and the aiohttp path, all played by the tests."""

import gc
import time
import weakref
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from unit.http.played import OTHER, Connection, request

from core.errors import invalid
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.http.errors import refusal
from frontends.http.native import pending_response

CORPUS = Path(__file__).parents[2] / "fuzz/corpus/http_head"


@pytest.fixture
def connection():
    return Connection()


def test_an_answer_has_the_fields_of_every_answer(connection):
    connection.receive(request())
    connection.answer(0)

    head, body = connection.transport.sent.split(b"\r\n\r\n")
    first, *fields = head.decode().split("\r\n")
    assert first == "HTTP/1.1 200 OK"
    assert [field.split(": ")[0] for field in fields] == [
        "Content-Type",
        "Server",
        "Content-Length",
        "Date",
    ]
    assert fields[2] == f"Content-Length: {len(body)}"
    assert abs(parsedate_to_datetime(fields[3][6:]).timestamp() - time.time()) < 60


def test_a_request_may_be_cut_at_every_byte(connection):
    data = request("cut", (1.0, 2.0))
    for at in range(1, len(data)):
        connection.receive(data[:at])
        assert len(connection.replies) == at - 1
        connection.receive(data[at:])
        assert list(connection.replies[-1].request.inputs["x"].array) == [1.0, 2.0]
        connection.answer(-1)
    assert connection.ids() == ["cut"] * (len(data) - 1)
    assert connection.fallbacks == []


def test_models_may_answer_at_once(connection):
    connection.answers_at_once = True
    connection.receive(b"".join(request(str(number)) for number in range(200)) + OTHER)

    assert connection.ids() == [str(number) for number in range(200)]
    assert len(connection.transport.written) == 1
    assert connection.fallbacks[0].data == OTHER


def test_answers_leave_in_the_order_of_requests(connection):
    connection.receive(request("a") + request("b") + request("c"))

    connection.answer(2)
    connection.answer(1)
    assert connection.transport.written == []
    connection.answer(0)
    connection.turns.pop()()

    assert connection.ids() == ["a", "b", "c"]
    assert len(connection.transport.written) == 1


def test_answers_of_one_turn_are_one_write(connection):
    connection.receive(request("a") + request("b") + request("c"))

    for which in range(3):
        connection.answer(which)
    for turn in connection.turns:
        turn()

    assert connection.ids() == ["a", "b", "c"]
    assert len(connection.transport.written) <= 2


def test_large_outputs_are_written_without_a_copy(connection):
    connection.receive(request("a", parameters={"binary_data_output": True}))
    values = np.arange(100_000, dtype=np.float32)
    reply = connection.replies[0]
    reply.send(InferenceResponse("m", 1, [Tensor.of("y", values)]))

    ((*_, last),) = connection.transport.written
    assert np.shares_memory(np.frombuffer(last, np.float32), values)
    assert connection.transport.sent.endswith(values.tobytes())


def test_outputs_that_a_client_could_change_are_copied(connection):
    connection.receive(request("a", parameters={"binary_data_output": True}))
    values = np.arange(100_000, dtype=np.float32)
    reply = connection.replies[0]
    reply.request.shared = True
    reply.send(InferenceResponse("m", 1, [Tensor.of("y", values)]))

    ((whole,),) = connection.transport.written
    assert whole.endswith(values.tobytes())


def test_errors_of_all_kinds_are_answers(connection, caplog):
    connection.receive(request("a") + request("b") + request("c"))
    connection.replies[0].fail(invalid("wrong: a"))
    connection.replies[1].send(None)
    connection.replies[2].send(InferenceResponse("m", 1, [SimpleNamespace(name="y")]))
    connection.turns.pop()()

    sent = connection.transport.sent
    assert sent.count(b"HTTP/1.1 400 Bad Request\r\n") == 1
    assert sent.count(b"HTTP/1.1 500 Internal Server Error\r\n") == 2
    assert b'{"error":"wrong: a"}' in sent
    assert b'{"error":"expected a single response, got 0"}' in sent
    assert b"unexpected error in the server; its log has the details" in sent
    assert "HTTP: an inference failed" in caplog.text


# The aiohttp path ----------------------------------------------------------------------------


def test_aiohttp_waits_for_the_responses_before_it(connection):
    connection.receive(request("a") + OTHER)
    assert connection.fallbacks == [] and not connection.transport.reading

    connection.answer(0)

    assert connection.fallbacks[0].data == OTHER
    assert connection.ids() == ["a"] and connection.transport.reading


def test_aiohttp_keeps_the_connection_until_it_has_answered(connection):
    connection.receive(OTHER)
    connection.receive(request("a"))
    (fallback,) = connection.fallbacks
    assert fallback.data == OTHER + request("a")

    fallback.idle = True
    connection.receive(request("b"))

    assert fallback.data == OTHER + request("a")
    assert [reply.request.id for reply in connection.replies] == ["b"]


def test_aiohttp_keeps_requests_that_only_it_supports(connection):
    start = b"POST /v2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"
    connection.receive(start)
    (fallback,) = connection.fallbacks
    fallback.idle = True  # as if it had seen the end
    connection.receive(request("a"))  # within the chunks, for all that is known

    assert fallback.data == start + request("a")


def test_a_blank_line_ends_a_request_that_only_aiohttp_supports(connection):
    start = b"POST /v2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    connection.receive(start)
    (fallback,) = connection.fallbacks
    fallback.idle = True
    connection.receive(request("a"))

    assert fallback.data == start
    assert len(connection.replies) == 1


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_no_byte_of_a_head_is_lost(path):
    whole, cut = Connection(), Connection()
    data = path.read_bytes()
    whole.receive(data)
    for at in range(len(data)):
        cut.receive(data[at : at + 1])

    for connection in (whole, cut):
        if connection.fallbacks:
            assert connection.fallbacks[0].data == data
    assert len(whole.fallbacks) == len(cut.fallbacks)
    assert len(whole.replies) == len(cut.replies)


# Pressure and the end --------------------------------------------------------------------------


def test_a_client_that_does_not_read_is_not_read(connection):
    connection.receive(request("a"))
    connection.lane.pause_writing()
    assert not connection.transport.reading
    connection.answer(0)
    connection.receive(request("b"))  # came in spite of the pause
    assert connection.ids() == [] and len(connection.replies) == 1

    connection.lane.resume_writing()

    assert connection.ids() == ["a"] and connection.transport.reading
    assert len(connection.replies) == 2


def test_too_many_requests_wait_outside(connection):
    connection.receive(b"".join(request(str(number)) for number in range(100)))
    assert len(connection.replies) == 64 and not connection.transport.reading

    for which in range(64):
        connection.answer(which)
    for turn in connection.turns:
        turn()

    assert len(connection.replies) == 100 and connection.transport.reading


def test_a_lost_connection_cancels_its_requests(connection):
    connection.receive(request("a") + request("b"))
    connection.lane.connection_lost(None)

    assert [reply.request.cancelled for reply in connection.replies] == [True, True]
    connection.answer(0)
    assert connection.transport.written == [] and connection.open == set()


def test_a_finished_connection_closes_after_its_last_answer(connection):
    connection.receive(request("a"))
    connection.lane.finish()
    connection.receive(request("too late"))
    assert not connection.transport.closed

    connection.answer(0)

    assert connection.ids() == ["a"] and connection.transport.closed
    assert len(connection.replies) == 1


def test_an_idle_connection_closes_at_once(connection):
    connection.receive(request("a")[:20])
    connection.lane.finish()
    assert connection.transport.closed


def test_an_answered_request_leaves_no_objects(connection):
    gc.disable()
    try:
        connection.receive(request("a"))
        seen = weakref.ref(connection.replies[0].request.inputs["x"].array)
        connection.answer(0)
        connection.replies.clear()
        assert seen() is None
    finally:
        gc.enable()


def test_each_head_counts_also_where_it_is_nearly_the_last(connection):
    def asked(path, *fields):
        body = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1],%s}]}'
        data = b'"data":[1]' if not fields else b'"parameters":{"binary_data_size":4}'
        body = body % data + (b"" if not fields else b"\0\0\x80\x3f")
        head = [b"POST /v2/models/%s/infer HTTP/1.1" % path, b"Host: x", *fields]
        return b"\r\n".join([*head, b"Content-Length: %d" % len(body), b"", body])

    split = b"Inference-Header-Content-Length: 91"
    for path, *fields in (
        (b"m",),
        (b"m",),
        (b"n",),
        (b"n/versions/1",),
        (b"n/versions/2",),
        (b"n/versions/2", split),
        (b"n/versions/2", split),
        (b"m",),
    ):
        connection.receive(asked(path, *fields))

    asked_for = [
        (each.request.model_name, each.request.model_version) for each in connection.replies
    ]
    assert asked_for == [("m", -1)] * 2 + [("n", -1), ("n", 1)] + [("n", 2)] * 3 + [("m", -1)]
    assert [list(each.request.inputs["x"].array) for each in connection.replies] == [[1.0]] * 8
    assert connection.fallbacks == []


def test_a_long_header_of_an_error_is_sent_whole(connection, monkeypatch):
    answer = refusal(401, "no")
    answer.headers = {**answer.headers, "WWW-Authenticate": "x" * 5000}
    monkeypatch.setattr(pending_response, "error_answer", lambda error: answer)
    connection.receive(request(values=(1.0,), parameters=1))

    head, _, body = connection.transport.sent.partition(b"\r\n\r\n")
    assert b"\r\nWWW-Authenticate: " + b"x" * 5000 + b"\r\n" in head
    assert body == b'{"error":"no"}'
