"""RTSP: real cameras of GStreamer over TCP and UDP, and servers that misbehave."""

import os
import re
import resource
import socket
import threading
import time

import pytest
from backend_video.camera import _Talk

from core.errors import CoreError, Kind


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_frames_come_over_both_transports_until_the_client_leaves(camera, stream, ask, transport):
    url = camera().url

    answers = stream("web", url, transport=transport)
    first = next(answers)
    second = next(answers)
    answers.close()

    assert first["frame"].shape == (120, 160, 3)
    assert int(second["pts"][0]) > int(first["pts"][0])
    begin = time.monotonic()
    ask("web", url, transport=transport, frames=1)
    assert time.monotonic() - begin < 10  # the only decoder was free


def test_every_frame_with_the_policy_all(camera, ask):
    answers = ask("web", camera().url, policy="all", frames=40)

    assert [int(each["index"][0]) for each in answers] == list(range(40))
    assert all(int(each["dropped"][0]) == 0 for each in answers)
    assert all(each["notice"][0] == b"" for each in answers)


def test_a_camera_that_dies_comes_back_with_a_gap(camera, stream):
    one = camera()
    answers = stream("web", one.url)
    before = next(answers)
    one.kill()
    restarted = threading.Timer(0.3, one.restart)
    restarted.start()

    after = next(each for each in answers if each["gap"][0])

    answers.close()
    restarted.join()
    assert 0.2e9 < int(after["gap"][0]) < 20e9
    assert int(after["pts"][0]) - int(before["pts"][0]) >= int(after["gap"][0]) * 0.9
    assert b"the source was lost for" in after["notice"][0]


class Fake:
    """A server that gives its own answer to each method."""

    def __init__(self, answers):
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"rtsp://127.0.0.1:{self._listener.getsockname()[1]}/x"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        connection, _ = self._listener.accept()
        with connection:
            while request := connection.recv(65536):
                method = request.partition(b" ")[0].decode()
                number = re.search(rb"CSeq: (\d+)", request)[1].decode()
                status, *head = self._answers[method]
                lines = [f"RTSP/1.0 {status}", f"CSeq: {number}", *head, "", ""]
                connection.sendall("\r\n".join(lines).encode())

    def close(self):
        self._thread.join()
        self._listener.close()


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (
            ("302 Moved", "Location: rtsp://10.0.0.1/x"),
            Kind.FORBIDDEN,
            "redirects to another server",
        ),
        (("404 Not Found",), Kind.INVALID, "404 Not Found"),
        (
            ("401 Unauthorized", 'WWW-Authenticate: Basic realm="x"'),
            Kind.INVALID,
            "401 Unauthorized",
        ),
    ],
)
def test_what_the_server_refuses_and_redirects(ask, answer, kind, text):
    server = Fake({"OPTIONS": ("200 OK", "Public: DESCRIBE"), "DESCRIBE": answer})

    with pytest.raises(CoreError, match=text) as error:
        ask("web", server.url)

    server.close()
    assert error.value.kind is kind
    assert server.url in error.value.message


def test_a_query_does_not_choose_the_transport(ask):
    with pytest.raises(CoreError, match="has a transport in its query; name it with the request"):
        ask("web", "rtsp://127.0.0.1:9/x?multicast")


def talk(address="10.1.1.1"):
    made = _Talk("rtsp://a:554/x", address)
    made.asked(b"SETUP rtsp://127.0.0.1:5/x RTSP/1.0\r\n\r\n")
    return made


def test_packets_are_sent_to_the_camera_only():
    """A camera may name an address for its packets: FFmpeg would send reports to it."""
    head = b"RTSP/1.0 200 OK\r\nCSeq: 3\r\nTransport: RTP/AVP;unicast;source=10.9.9.9;client_port=1-2\r\n\r\n"

    assert talk().answered(head) == (
        b"RTSP/1.0 200 OK\r\nCSeq: 3\r\nTransport: RTP/AVP;unicast;client_port=1-2;source=10.1.1.1\r\n\r\n"
    )
    group = b"RTSP/1.0 200 OK\r\nTransport: RTP/AVP;multicast;destination=239.0.0.1\r\n\r\n"
    with pytest.raises(CoreError, match="sends to a group of addresses"):
        talk().answered(group)


def test_messages_are_checked_in_whatever_pieces_they_come():
    head = b"RTSP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc$\x00\x00\x02xyRTSP/1.0 301 x\r\n\r\n"
    made = talk()
    passed = b""

    with pytest.raises(CoreError, match="redirects"):
        for i in range(len(head)):
            passed += made.answered(head[i : i + 1])

    assert passed == head[: head.index(b"RTSP/1.0 301")]


def test_after_play_bytes_pass_unchanged():
    made = talk()
    made.asked(b"PLAY rtsp://127.0.0.1:5/x RTSP/1.0\r\n\r\n")

    assert made.answered(b"RTSP/1.0 200 OK\r\n\r\n$\0\0") == b"RTSP/1.0 200 OK\r\n\r\n$\0\0"
    assert made.answered(b"RTSP/1.0 302 of video\r\n\r\n") == b"RTSP/1.0 302 of video\r\n\r\n"


OK = b"RTSP/1.0 200 OK\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"RTSP/1.0  302 Moved\r\nLocation: rtsp://10.0.0.1/x",
        b"RTSP/1.0\t302 Moved\r\nLocation: rtsp://10.0.0.1/x",
        b"RTSP/1.0 302\tMoved\r\nLocation: rtsp://10.0.0.1/x",
        b"\nRTSP/1.0 302 Moved\r\nLocation: rtsp://10.0.0.1/x",
        b"RTSP/1.0 200 OK\n\nRTSP/1.0 302 Moved",
        OK + b"X: y\nTransport: RTP/AVP;source=10.9.9.9",
        OK + b"T\rransport: RTP/AVP;source=10.9.9.9",
        OK + b"$\0\0\1",
        OK + b"Content-Length: 0\r\nContent-Length: 1",
        OK + b"Content-Length: 0000000000",
        OK + b"Content-Length: +1",
        OK + b"Transport: " + b" " * 4000 + b"RTP/AVP",
    ],
)
def test_heads_that_ffmpeg_reads_in_another_way_are_refused(head):
    with pytest.raises(CoreError, match="sends no messages of RTSP; expected lines") as error:
        talk().answered(head + b"\r\n\r\n0123456789")
    assert error.value.kind is Kind.INVALID


@pytest.mark.parametrize(
    "head",
    [
        b"Transport: RTP/AVP\r\nTransport: RTP/AVP;source=10.9.9.9",
        b"Transport: x/source=10.9.9.9",
        b"Transport: RTP/AVP;/source=10.9.9.9",
        b"Transport: RTP/AVP;server_port=1-2, RTP/AVP;destination=10.9.9.9",
    ],
)
def test_no_transport_keeps_another_address(head):
    passed = talk().answered(OK + head + b"\r\n\r\n")

    assert b"10.9.9.9" not in passed
    assert passed.count(b";source=10.1.1.1\r\n") == head.count(b"Transport")


def test_bodies_keep_their_length():
    """A longer or shorter body would hide the beginning of the next message."""
    body = b"\r\nTransport: x;source=10.9.9.9"
    message = OK + b"Content-Length: %d\r\n\r\n" % len(body) + body

    assert talk().answered(message) == message


def test_requests_of_the_camera_pass():
    request = b"OPTIONS rtsp://127.0.0.1/x RTSP/1.0\r\nCSeq: 1\r\n\r\n"

    assert talk().answered(request) == request


def test_a_process_may_have_more_than_1024_files(ask):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    server = Fake({"OPTIONS": ("200 OK", "Public: DESCRIBE"), "DESCRIBE": ("404 Not Found",)})
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        with pytest.raises(CoreError, match="404 Not Found"):
            ask("web", server.url)
    finally:
        for each in files:
            os.close(each)
        server.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
