"""Sources that send, but so slowly that their frames would take for ever."""

import contextlib
import itertools
import time
from io import BytesIO

import pytest
from backend_video.decoder import Decoder
from backend_video.films import film, number_in
from backend_video.patience import Patience
from backend_video.stop import Stop

from core.errors import CoreError, Kind


def slowly(parts, head=b"", pause_s=0.1):
    """A page that sends part by part, with a pause before each."""

    def page(handler):
        handler.close_connection = True
        handler.wfile.write(head)
        for part in parts:
            time.sleep(pause_s)
            handler.wfile.write(part)

    return page


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "head",
    [HEAD, HEAD + b"Content-Length: 1000\r\n\r\n", HEAD + b"\r\n"],
    ids=["in its head", "in a film", "in a film without a length"],
)
def test_a_server_that_sends_a_byte_now_and_then_is_an_error(site, ask, head):
    site.pages["/x"] = slowly([b"x"] * 100, head, pause_s=0.05)

    with pytest.raises(CoreError, match=r"/x' sends, but gave no frame for 3 s, 6 times") as error:
        ask("impatient", f"{site.url}/x")
    assert error.value.kind is Kind.UNAVAILABLE


def test_packets_without_frames_are_an_error_once_the_time_is_over(film50):
    over = Patience(timeout_s=0)
    decoder = Decoder(
        BytesIO(film50), "x", Stop(), most_pixels=10**6, threads=1, timeout_s=1, patience=over
    )

    with contextlib.closing(decoder), pytest.raises(CoreError, match="'x' sends, but gave no fr"):
        next(decoder.frames())


def test_time_without_a_connection_does_not_count():
    patience = Patience(timeout_s=0)
    assert patience.is_over

    patience.skip(60)

    assert not patience.is_over


def camera_of(frames, pause_s=0.1):
    """A camera of Motion JPEG that sends frames with pauses. Their stamps say 25 per second."""
    parts = film(frames, container="mpjpeg").split(b"--ffmpeg")[1:]
    assert len(parts) >= frames
    head = HEAD + b"Content-Type: multipart/x-mixed-replace;boundary=frame\r\n\r\n"
    return slowly([b"--ffmpeg" + each for each in parts], head, pause_s)


def test_a_slow_source_is_read_on_as_long_as_frames_come(site, stream):
    site.pages["/cam"] = camera_of(30, pause_s=0.2)  # over 6 times the time of a read

    answers = itertools.islice(stream("slow", f"{site.url}/cam"), 25)

    assert [number_in(each["frame"]) for each in answers] == list(range(25))


def test_a_duration_is_also_one_of_the_clock(site, ask):
    site.pages["/cam"] = camera_of(40)

    answers = ask("web", f"{site.url}/cam", duration_s=1)

    assert 1 <= len(answers) < 25  # by their stamps alone, it were 25
