"""Web servers: ranges, lost connections, redirects, cameras of Motion JPEG, silence."""

import re
import time
from statistics import median

import numpy as np
import pytest
from backend_video.films import film, number_in
from backend_video.web_file import _whole_size

from core.errors import CoreError, Kind

BOUNDARY = "frame"


def numbers(answers):
    return [number_in(each["frame"]) for each in answers]


def ranged(data):
    """A page with ranges."""

    def page(handler):
        begin = int(re.fullmatch(r"bytes=(\d+)-", handler.headers["Range"])[1])
        head = [
            ("Content-Length", str(len(data) - begin)),
            ("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}"),
        ]
        handler.answer(206, head, data[begin:])

    return page


def plain(data):
    """A page without ranges."""
    return lambda handler: handler.answer(200, [("Content-Length", str(len(data)))], data)


def redirect(target, status=302):
    head = [("Location", target), ("Content-Length", "0")]
    return lambda handler: handler.answer(status, head)


def test_a_film_with_its_index_at_the_end_is_read_by_ranges(site, ask, film50):
    site.pages["/film.mp4"] = ranged(film50)

    assert numbers(ask("web", f"{site.url}/film.mp4")) == list(range(50))
    assert site.asked[0] == ("/film.mp4", "bytes=0-")


@pytest.mark.parametrize(
    ("text", "size"),
    [("bytes 0-1/2", 2), ("bytes 0-1/*", None), ("", None), ("bytes 0-1/" + "9" * 5000, None)],
)
def test_the_size_of_a_file_is_a_number_of_few_digits(text, size):
    assert _whole_size(text) == size


def test_a_server_without_ranges_gives_films_with_their_index_at_the_beginning(site, ask):
    site.pages["/film.mkv"] = plain(film(20, container="matroska"))

    assert numbers(ask("web", f"{site.url}/film.mkv")) == list(range(20))


def test_a_lost_connection_continues_where_it_ended(site, ask):
    data = film(100, container="mpegts", width=320, height=240)
    breaks = []

    def page(handler):
        if len(breaks) == 3:
            ranged(data)(handler)
            return
        begin = int(re.fullmatch(r"bytes=(\d+)-", handler.headers["Range"])[1])
        breaks.append(begin)
        handler.close_connection = True
        head = [
            ("Content-Length", str(len(data) - begin)),
            ("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}"),
        ]
        handler.answer(206, head, data[begin : begin + len(data) // 5])

    site.pages["/film.ts"] = page

    answers = ask("web", f"{site.url}/film.ts")

    assert numbers(answers) == list(range(100))
    assert len(breaks) == 3
    assert all(each["gap"][0] == 0 for each in answers)


def test_a_redirect_is_followed_if_its_target_is_allowed(site, ask, film50):
    site.pages["/film.mp4"] = ranged(film50)
    site.pages["/old"] = redirect("/film.mp4", 307)

    assert len(ask("web", f"{site.url}/old")) == 50


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_redirect_keeps_the_password_for_the_same_host_only(site, ask, film50, host):
    seen = []

    def page(handler):
        seen.append(handler.headers.get("Authorization"))
        plain(film50)(handler)

    site.pages["/film"] = page
    site.pages["/old"] = redirect(f"http://{host}:{site.server_address[1]}/film")

    ask("web", site.url.replace("//", "//user:secret@") + "/old", frames=1)

    assert seen == ["Basic dXNlcjpzZWNyZXQ=" if host == "127.0.0.1" else None]


def chunked(data, end=b"0\r\n\r\n"):
    """A page without a length, in one chunk."""

    def page(handler):
        body = b"%x\r\n%s\r\n%s" % (len(data), data, end)
        handler.close_connection = True
        handler.answer(200, [("Transfer-Encoding", "chunked")], body)

    return page


def test_a_film_in_chunks_is_played_once(site, ask):
    site.pages["/film"] = chunked(film(5, container="matroska"))

    assert numbers(ask("web", f"{site.url}/film", frames=7)) == list(range(5))
    assert len(site.asked) == 1


def test_a_film_without_its_last_chunk_is_asked_for_again(site, ask):
    site.pages["/film"] = chunked(film(5, container="matroska"), end=b"")

    answers = ask("web", f"{site.url}/film", frames=7)

    assert numbers(answers) == [0, 1, 2, 3, 4, 0, 1]
    assert b"broke off" in answers[5]["notice"][0]


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("http://10.1.2.3/film.mp4", "host '10.1.2.3' is not allowed"),
        ("http://127.0.0.1.nip.test/", "is not allowed"),
        ("file:///etc/passwd", "has the scheme 'file'"),
        ("rtsp://127.0.0.1:9/x", "redirects from http to rtsp, which is not followed"),
        ("/again", "redirects more than 5 times"),
    ],
)
def test_other_redirects_are_refused(site, ask, target, text):
    site.pages["/again"] = redirect(target)

    with pytest.raises(CoreError, match=text):
        ask("web", f"{site.url}/again")


def test_an_address_that_is_not_public_is_refused_though_its_name_is_allowed(site, server, config):
    repository = server.repository
    (repository / "public" / "1").mkdir(parents=True)
    (repository / "public" / "config.pbtxt").write_text(config({"hosts": "*:*"}))
    import core

    with core.Server(
        model_repository=str(repository), model_control_mode="explicit", load_model=["public"]
    ) as running:
        for host in ("localhost", "127.0.0.1", "[::ffff:127.0.0.1]"):
            url = f"http://{host}:{site.server_address[1]}/film.mp4"
            with pytest.raises(CoreError, match="has no public address") as error:
                list(running.stream("public", {"url": [url]}))
            assert error.value.kind is Kind.FORBIDDEN
    assert site.asked == []


@pytest.mark.parametrize(
    ("status", "kind"), [(404, Kind.NOT_FOUND), (403, Kind.INVALID), (503, Kind.UNAVAILABLE)]
)
def test_the_status_of_the_server_is_told(site, ask, status, kind):
    site.pages["/x"] = lambda handler: handler.answer(status, [("Content-Length", "0")])

    with pytest.raises(CoreError, match=f"/x' answers {status}.*; expected a video") as error:
        ask("impatient", f"{site.url}/x")
    assert error.value.kind is kind


def test_what_a_server_sends_is_limited(site, ask):
    data = film(50, container="matroska", width=320, height=240)
    site.pages["/long"] = plain(data)
    site.pages["/endless"] = lambda handler: handler.answer(200, (), data)  # no length
    for path in ("/long", "/endless"):
        with pytest.raises(CoreError, match="more than 5000 bytes, the 'max_megabytes'"):
            ask("short", site.url + path)


def camera(parts, frames=5, silent_s=0):
    """A camera of Motion JPEG that breaks off after some frames; `parts` counts its connections.

    silent_s   how long it says nothing before
    """
    data = film(frames, container="mpjpeg")

    def page(handler):
        parts.append(time.monotonic())
        handler.close_connection = True
        kind = f"multipart/x-mixed-replace;boundary={BOUNDARY}"
        handler.answer(200, [("Content-Type", kind)], data)
        time.sleep(silent_s)

    return page


def test_a_camera_that_breaks_off_is_asked_again_and_each_gap_is_told(site, ask):
    connections = []
    site.pages["/cam"] = camera(connections)

    answers = ask("web", f"{site.url}/cam", frames=12)

    assert numbers(answers) == [0, 1, 2, 3, 4] * 2 + [0, 1]
    assert [int(each["index"][0]) for each in answers] == list(range(12))
    times = [int(each["pts"][0]) for each in answers]
    assert times == sorted(set(times))
    gaps = [i for i, each in enumerate(answers) if each["gap"][0]]
    assert gaps == [5, 10]
    for i in gaps:
        assert b"the source was lost for" in answers[i]["notice"][0]
        assert times[i] - times[i - 1] >= 100_000_000


def test_the_silence_before_a_loss_is_part_of_its_gap(site, ask):
    site.pages["/cam"] = camera([], silent_s=0.8)

    answers = ask("web", f"{site.url}/cam", frames=6)

    assert int(answers[5]["gap"][0]) >= 0.7e9
    assert int(answers[5]["pts"][0]) - int(answers[4]["pts"][0]) >= int(answers[5]["gap"][0])


def test_a_camera_that_does_not_come_back_is_an_error(site, stream):
    site.pages["/cam"] = camera([])
    received = []

    with pytest.raises(CoreError, match=r"was lost, and not back after 0.[3-9].* tries") as error:
        for each in stream("impatient", f"{site.url}/cam"):
            received.append(each)
            site.pages["/cam"] = lambda handler: handler.answer(503, [("Content-Length", "0")])

    assert len(received) == 5
    assert error.value.kind is Kind.UNAVAILABLE


def test_a_silent_server_is_an_error_after_the_timeout(listener, ask):
    port = listener.getsockname()[1]

    with pytest.raises(CoreError, match="does not answer: it does not answer in time"):
        ask("impatient", f"http://127.0.0.1:{port}/x")


def seconds_to_a_frame(ask, data, begin):
    """Return the time from `begin` until a film has been opened, and one frame of it is here."""
    assert len(ask("web", data, frames=1)) == 1
    return time.monotonic() - begin


def assert_freed_within_100_ms(took, alone):
    """Compare the time to a frame after a cancelled request with that of a free decoder.

    A machine that does other work delays both alike. `pytest -rP` shows the times.
    """
    for name, times in (("cancelled, then a frame", took), ("a frame alone", alone)):
        print(f"{name}: {', '.join(f'{1000 * each:.0f}' for each in sorted(times))} ms")
    assert median(took) < 0.1 + 2 * median(alone)


@pytest.mark.parametrize("scheme", ["http", "https", "rtsp"])
def test_a_cancelled_request_frees_its_decoder_within_100_ms(
    listener, server, ask, stream, film50, scheme
):
    """The source says nothing. The model has one decoder, so its next answer shows when that is free."""
    url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/x"
    took, alone = [], []
    for _ in range(7):
        waiting = stream("web", url)
        connection, _ = listener.accept()
        connection.recv(1)  # of the request, or of the TLS handshake
        begin = time.monotonic()
        waiting.close()
        took.append(seconds_to_a_frame(ask, film50, begin))
        connection.close()
        alone.append(seconds_to_a_frame(ask, film50, time.monotonic()))

    assert_freed_within_100_ms(took, alone)


def test_a_cancelled_request_frees_a_decoder_that_is_at_work_within_100_ms(
    site, ask, stream, film50, eventually
):
    noise = np.random.default_rng(0).integers(0, 256, (240, 320, 3), np.uint8)
    data = film(20, container="mpjpeg", width=320, height=240, picture=lambda *_: noise)
    data = data[: data.rindex(b"--ffmpeg")]  # the next frame has a boundary of its own
    sent = []

    def page(handler):
        handler.close_connection = True
        kind = f"multipart/x-mixed-replace;boundary={BOUNDARY}"
        handler.answer(200, [("Content-Type", kind)])
        while True:  # until the client has left
            handler.wfile.write(data)
            sent.append(len(data))

    site.pages["/cam"] = page
    took, alone = [], []
    for _ in range(7):
        sent.clear()
        waiting = stream("web", f"{site.url}/cam", every=1_000_000, policy="all")
        next(waiting)
        eventually(lambda: sum(sent) > 8e6)  # more than waits in sockets: it decodes
        begin = time.monotonic()
        waiting.close()
        took.append(seconds_to_a_frame(ask, film50, begin))
        alone.append(seconds_to_a_frame(ask, film50, time.monotonic()))

    assert_freed_within_100_ms(took, alone)
