"""The heads of requests and responses: what is read, what is passed on, what is refused."""

import pytest
from core_router.http.heads import CHUNKED, UNTIL_CLOSE, BadHead, request_head, response_head


def request(*fields, line="POST /v2/models/m/infer HTTP/1.1"):
    return request_head("\r\n".join([line, "Host: x", *fields, "", ""]).encode())


def response(*fields, line="HTTP/1.1 200 OK"):
    return response_head("\r\n".join([line, *fields, "", ""]).encode())


def test_a_request_is_passed_on_byte_for_byte():
    raw = b"POST /v2/models/m/infer?x=1 HTTP/1.1\r\nhOST: x\r\nContent-length:  5\r\nX-Any: \xe4\r\n\r\n"

    head = request_head(raw)

    assert head.passed_on is raw
    assert (head.method, head.target) == (b"POST", b"/v2/models/m/infer?x=1")
    assert (head.body_size, head.keep_alive) == (5, True)


def test_fields_of_a_connection_stay_on_it():
    head = request("Connection: close, X-Hop", "X-Hop: 1", "Keep-Alive: 5", "X-End: 2")

    assert not head.keep_alive
    assert head.passed_on == b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nX-End: 2\r\n\r\n"


def test_connection_cannot_remove_the_framing():
    head = request("Connection: Content-Length, Host", "Content-Length: 3")

    assert b"Content-Length: 3" in head.passed_on
    assert b"Host: x" in head.passed_on


def test_an_upgrade_is_passed_on():
    head = request("Connection: keep-alive, Upgrade", "Upgrade: websocket")

    assert head.upgrades
    assert head.passed_on.endswith(b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n")


def test_the_router_answers_expect_itself():
    head = request("Expect: 100-continue", "Content-Length: 3")

    assert head.expects
    assert b"Expect" not in head.passed_on


def test_http_1_0_gets_one_response():
    assert not request("Connection: keep-alive", line="GET / HTTP/1.0").keep_alive


def test_the_json_before_binary_tensors_has_a_size():
    assert request("Inference-Header-Content-Length: 12").json_size == 12
    assert request().json_size == -1


@pytest.mark.parametrize(
    "fields",
    [
        ["Content-Length: 3", "Content-Length: 3"],
        ["Content-Length: 3, 3"],
        ["Content-Length: +3"],
        ["Content-Length: "],
        ["Content-Length: 3", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        ["Content-Length : 3"],
        [" Content-Length: 3"],
        ["X: 1", " folded: 2"],
        ["X: a\x00b"],
        ["X: a\rb"],
        ["no colon"],
    ],
)
def test_a_head_with_two_meanings_is_refused(fields):
    with pytest.raises(BadHead) as error:
        request(*fields)
    assert error.value.status == 400


@pytest.mark.parametrize(
    ("fields", "status"),
    [(["Transfer-Encoding: gzip, chunked"], 501), (["Expect: 200-ok"], 417)],
)
def test_what_the_router_cannot_do_is_refused(fields, status):
    with pytest.raises(BadHead) as error:
        request(*fields)
    assert error.value.status == status


@pytest.mark.parametrize(
    "line",
    [
        "GET /",
        "GET / HTTP/2.0",
        "get / HTTP/1.1",
        "GET  / HTTP/1.1",
        "GET /a b HTTP/1.1",
        "GET http://x/ HTTP/1.1",
        "GET / HTTP/1.1\n",
    ],
)
def test_other_request_lines_are_refused(line):
    with pytest.raises(BadHead):
        request(line=line)


def test_the_end_of_a_response_is_known():
    assert response("Content-Length: 4").body_size == 4
    assert response("Transfer-Encoding: Chunked").body_size == CHUNKED
    assert response().body_size == UNTIL_CLOSE
    assert response(line="HTTP/1.1 204 No Content").body_size == 0
    assert response("Content-Length: 4", line="HTTP/1.1 304 Not Modified").body_size == 0


def test_the_end_of_a_servers_connection_is_not_that_of_the_clients():
    head = response("Content-Length: 0", "Connection: close")

    assert not head.keep_alive
    assert head.passed_on == b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    assert head.closing() == b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def test_a_response_with_two_meanings_is_refused():
    with pytest.raises(BadHead):
        response("Content-Length: 4", "Transfer-Encoding: chunked")
    with pytest.raises(BadHead):
        response(line="HTTP/1.1 abc")
