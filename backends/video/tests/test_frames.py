"""Films of files and requests: which frames are delivered, in which form, and what is refused."""

import io
import time

import av
import numpy as np
import pytest
from backend_video.films import decoded, film, number_in

from core.errors import CoreError


def numbers(answers):
    return [number_in(each["frame"]) for each in answers]


def test_a_file_gives_the_frames_of_pyav_with_their_times_and_numbers(ask, film50):
    answers = ask("films", "film.mp4")

    assert len(answers) == 50
    for number, (answer, frame) in enumerate(zip(answers, decoded(film50), strict=True)):
        assert np.array_equal(answer["frame"], frame)
        assert answer["index"].tolist() == [number]
        assert answer["pts"].tolist() == [number * 40_000_000]
        assert answer["gap"].tolist() == answer["dropped"].tolist() == [0]
        assert answer["notice"].tolist() == [b""]


@pytest.mark.parametrize("container", ["mp4", "matroska", "mpegts", "mpjpeg"])
def test_a_file_of_a_request_may_have_any_of_these_formats(ask, container):
    assert numbers(ask("bare", film(9, container=container))) == list(range(9))


def test_each_tenth_frame(ask):
    assert numbers(ask("films", "film.mp4", every=10)) == [0, 10, 20, 30, 40]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(5, list(range(0, 50, 5))), (25, list(range(50))), (100, list(range(50)))],
)
def test_a_rate_in_frames_per_second(ask, rate, expected):
    assert numbers(ask("films", "film.mp4", rate=rate)) == expected


def test_a_rate_that_does_not_divide_that_of_the_film_holds_on_average(ask):
    found = numbers(ask("films", "film.mp4", rate=10))

    assert len(found) == 20
    assert set(np.diff(found)) == {2, 3}


def test_an_answer_ends_after_some_frames_or_some_time(ask):
    assert numbers(ask("films", "film.mp4", frames=3)) == [0, 1, 2]
    assert numbers(ask("films", "film.mp4", duration_s=0.2)) == [0, 1, 2, 3, 4]


def test_a_request_cannot_exceed_what_the_model_allows(ask, film50):
    answers = ask("strict", film50, rate=25, max_width=64, frames=100)

    assert numbers(answers) == [0, 5, 10, 15]
    assert answers[0]["frame"].shape == (24, 32, 3)


def test_realtime_plays_a_film_at_its_own_speed(stream):
    begin = time.monotonic()

    times = [
        (time.monotonic() - begin, int(each["pts"][0]) / 1e9)
        for each in stream("films", "film.mp4", realtime=True, frames=8)
    ]

    assert len(times) == 8
    assert all(seconds >= pts for seconds, pts in times)


@pytest.mark.parametrize("width", [64, 66, 100, 322])
def test_frames_of_any_width_are_those_of_pyav(ask, width):
    data = film(3, width=width, height=50)

    answers = ask("bare", data)

    for answer, frame in zip(answers, decoded(data), strict=True):
        assert np.array_equal(answer["frame"], frame)


def test_bgr_and_nv12(ask, film50):
    (bgr,) = ask("bgr", "film.mp4", frames=1)
    (nv12,) = ask("nv12", "film.mp4", frames=1)

    assert np.array_equal(bgr["frame"], decoded(film50, "bgr24")[0])
    assert np.array_equal(nv12["frame"], decoded(film50, "nv12")[0])


def test_a_frame_is_made_smaller_and_keeps_its_proportions(ask):
    data = film(1, width=320, height=180)

    assert ask("bare", data, max_width=160)[0]["frame"].shape == (90, 160, 3)
    assert ask("bare", data, max_height=45)[0]["frame"].shape == (45, 80, 3)
    assert ask("bare", data, max_width=80, max_height=90)[0]["frame"].shape == (45, 80, 3)
    assert ask("bare", data, max_width=1000)[0]["frame"].shape == (180, 320, 3)


def test_nv12_has_even_sides(ask):
    (answer,) = ask("nv12", film(1, width=98, height=50), max_width=49)

    assert answer["frame"].shape == (24 * 3 // 2, 48)


def test_the_policy_latest_of_a_file_may_drop_frames_and_counts_them(ask):
    answers = ask("films", "film.mp4", policy="latest")

    delivered = [int(each["index"][0]) for each in answers]
    assert delivered == sorted(delivered)
    assert delivered[-1] == 49
    assert len(answers) + sum(int(each["dropped"][0]) for each in answers) == 50


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"every": 0}, "parameter 'every' of the request is '0', it must be a whole number from 1"),
        ({"every": 1.5}, "whole number"),
        ({"rate": "fast"}, "parameter 'rate' of the request is 'fast', it must be a number from 0"),
        ({"rate": float("nan")}, "it must be a number"),
        ({"policy": "newest"}, "it must be auto or all or latest"),
        ({"realtime": 2}, "it must be false or true"),
        ({"framse": 2}, "no request parameter 'framse'; did you mean 'frames'?"),
    ],
)
def test_wrong_parameters_of_a_request_are_named(ask, parameters, text):
    with pytest.raises(CoreError, match=text.replace("?", r"\?")):
        ask("films", "film.mp4", **parameters)


def test_a_request_names_one_video(server):
    with pytest.raises(CoreError, match="this one has none of them"):
        list(server.running.stream("films", {}))
    with pytest.raises(CoreError, match="this one has both of them"):
        list(server.running.stream("films", {"url": ["film.mp4"], "file": [b"x"]}))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"hello", "is no video that can be read"),
        (b"\0" * 1000, "is no video that can be read"),
        (b"ffconcat version 1.0\nfile /etc/passwd\n", "is no video that can be read"),
        (b"#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:2,\n/x.ts\n", "is no video that can be read"),
        (b"v=0\no=- 0 0 IN IP4 1.2.3.4\ns=x\nm=video 5004 RTP/AVP 96\n", "is no video"),
    ],
)
def test_what_is_no_film_is_refused_and_playlists_are_none(ask, data, text):
    with pytest.raises(CoreError, match=text):
        ask("bare", data)


def test_a_film_of_sound_only_is_refused(ask):
    target = io.BytesIO()
    with av.open(target, "w", format="mp4") as output:
        sound = output.add_stream("aac", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 8000
        output.mux(sound.encode(frame))
        output.mux(sound.encode())

    with pytest.raises(CoreError, match="has no video, only 1 other streams"):
        ask("bare", target.getvalue())


@pytest.mark.parametrize(("streams", "allowed"), [(16, True), (17, False)])
def test_a_film_has_at_most_16_streams(ask, streams, allowed):
    """FFmpeg decodes some frames of each, which costs memory."""
    target = io.BytesIO()
    with av.open(target, "w", format="mp4") as output:
        made = [output.add_stream("mpeg4", rate=25) for _ in range(streams)]
        for each in made:
            each.width, each.height, each.pix_fmt = 64, 48, "yuv420p"
        for each in made:
            output.mux(each.encode(av.VideoFrame(64, 48, "yuv420p")))
            output.mux(each.encode())

    if allowed:
        assert len(ask("bare", target.getvalue())) == 1
        return
    with pytest.raises(CoreError, match=r"\(it has more than 16 streams, or memory is short\)"):
        ask("bare", target.getvalue())


def test_damaged_parts_are_told_and_the_other_frames_come(ask):
    data = bytearray(film(75, container="mpegts", width=320, height=240))
    half = len(data) // 2
    data[half : half + 2000] = bytes(2000)

    answers = ask("bare", bytes(data))

    assert len(answers) > 50
    assert any(b"damaged" in each["notice"][0] for each in answers)


def test_sizes_are_limited(ask):
    with pytest.raises(CoreError, match="64 x 48 pixels, more than the 2000 of 'max_megapixels'"):
        ask("small", film(2))
    with pytest.raises(CoreError, match="more than 5000 bytes, the 'max_megabytes'"):
        ask("small", film(50, width=320, height=240))
    with pytest.raises(CoreError, match=r"'film.mp4' has 64 x 48|'film.mp4' has more than 5000"):
        ask("small", "film.mp4")
