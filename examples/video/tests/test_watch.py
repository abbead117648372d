"""The plugin of examples/video: a film, over RTSP, through detector and tracker to events and pictures.

WATCH_PICTURE names a file for a picture of the page, such as docs/pictures/video-watch.png.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import core
from core import plugins
from core.errors import CoreError

cv2 = pytest.importorskip("backend_image.opencv", reason="backend-image is not installed").cv2
pytest.importorskip("backend_tracker", reason="backend-tracker is not installed")
pytest.importorskip("backend_video", reason="backend-video is not installed")

FRAMES = 50


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A film of two seconds: `file`, and `truth`, the boxes of each frame."""
    import make_film

    file = tmp_path_factory.mktemp("film") / "film.mp4"
    return SimpleNamespace(file=file, truth=make_film.render(file, FRAMES / 25))


class Watched:
    """A server that watches videos. `models` is its repository."""

    def __init__(self, models, videos):
        named = [f"{name}={url}" for name, url in videos.items()]
        self._server = core.Server(model_repository=str(models), watch=named)
        self._server.start()
        port = self._server.serve(http_port=0)["http"]
        self._root = f"http://127.0.0.1:{port}"
        self.url = f"{self._root}/watch"

    def open(self, path):
        return urllib.request.urlopen(self.url + path, timeout=120)

    def counts(self, model):
        """Return the number of requests to a model and of its executions."""
        with urllib.request.urlopen(f"{self._root}/v2/models/{model}/stats", timeout=120) as answer:
            (found,) = json.load(answer)["model_stats"]
        return found["inference_count"], found["execution_count"]

    def events(self):
        """Yield events. The first one belongs to a frame after the call."""
        import served

        answer = self.open("/events")
        answer.readline()
        return served.events_of(answer)

    def close(self):
        self._server.stop()


@pytest.fixture(scope="module")
def watch(tmp_path_factory):
    """watch(name=url, …): a server that watches these videos, each frame of them."""
    import core_watch
    import served

    models = served.models(tmp_path_factory.mktemp("watched"), policy="all")
    plugins.hooks().register(core_watch, "watch")
    with contextlib.ExitStack() as ends:

        def run(**videos):
            running = Watched(models, videos)
            ends.callback(running.close)
            return running

        yield run
    plugins.hooks().unregister(core_watch)


@pytest.fixture(scope="module")
def one(watch, film):
    """A server that watches one camera; `from_the_beginning` are its events from the first frame on."""
    import camera

    # Its first client waits until the camera accepts it.
    listener = socket.create_server(("127.0.0.1", 0))
    running = watch(hall=f"rtsp://127.0.0.1:{listener.getsockname()[1]}/film")
    running.from_the_beginning = frames_of(running.events())
    camera.start(camera.Film(film.file), listener)
    return running


def frames_of(events):
    return (each for each in events if "tracks" in each)


def overlaps(boxes, others):
    import hota

    return hota.overlaps(np.array(boxes), np.array(others))


def test_each_object_keeps_its_id_in_every_frame(one, film):
    found = [next(one.from_the_beginning) for _ in range(FRAMES)]

    assert [each["index"] for each in found] == list(range(FRAMES))
    assert {each["video"] for each in found} == {"hall"}
    tracks = {}
    for event, truth in zip(found[2:], film.truth[2:], strict=True):
        near = overlaps(truth, [each["box"] for each in event["tracks"]])
        assert near.max(axis=1).min() > 0.8
        for number, track in enumerate(near.argmax(axis=1)):
            tracks.setdefault(number, set()).add(event["tracks"][track]["id"])
    assert sorted(min(ids) for ids in tracks.values()) == list(range(len(film.truth[0])))
    assert all(len(ids) == 1 for ids in tracks.values())


def test_pictures_come_as_motion_jpeg(one):
    with one.open("/videos/hall/pictures") as answer:
        assert answer.headers["Content-Type"] == "multipart/x-mixed-replace; boundary=picture"
        assert answer.readline() == b"--picture\r\n"
        assert answer.readline() == b"Content-Type: image/jpeg\r\n"
        size = int(answer.readline().partition(b":")[2])
        answer.readline()
        picture = answer.read(size)
        assert answer.read(len(b"\r\n--picture\r\n")) == b"\r\n--picture\r\n"

    decoded = cv2.imdecode(np.frombuffer(picture, np.uint8), cv2.IMREAD_COLOR)
    assert decoded.shape == (576, 768, 3)


def test_the_page_and_the_list_name_what_is_watched(one):
    next(frames_of(one.events()))

    # On a busy machine, two seconds may pass without a frame.
    while (video := json.load(one.open("/videos"))[0])["trouble"]:
        time.sleep(0.05)

    assert video["name"] == "hall"
    assert video["frames"] > 0
    assert b"<title>Watched videos</title>" in one.open("").read()


def test_an_unknown_video_has_no_pictures(one):
    with pytest.raises(urllib.error.HTTPError, match="404") as error:
        one.open("/videos/attic/pictures")
    assert "no video 'attic' is watched; --watch names hall" in json.load(error.value)["error"]


def test_a_camera_that_dies_is_told_as_a_gap_and_then_goes_on(watch, film):
    import served

    port = served.free_port()
    program = str(Path(served.__file__).with_name("camera.py"))

    def begin():
        command = [sys.executable, program, str(film.file), str(port)]
        made = subprocess.Popen(command, stdout=subprocess.PIPE)
        made.stdout.readline()
        return made

    first = begin()
    events = frames_of(watch(yard=f"rtsp://127.0.0.1:{port}/film").events())
    before = next(events)
    first.kill()
    second = begin()
    after = next(each for each in events if each["gap"])

    assert "the source was lost" in after["notice"]
    assert after["pts"] >= before["pts"] + after["gap"] * 0.9
    assert next(events)["gap"] == 0
    assert after["run"] == before["run"] or after["gap"] > 5e9
    for each in (first, second):
        each.kill()
        each.communicate()


def test_a_camera_that_is_not_there_is_trouble_and_tried_again(watch, film):
    import camera
    import served

    port = served.free_port()
    running = watch(door=f"rtsp://127.0.0.1:{port}/film")
    events = running.events()

    while (video := json.load(running.open("/videos"))[0])["trouble"] == "not yet begun":
        time.sleep(0.05)
    camera.start(camera.Film(film.file), port)

    assert f"cannot connect to '127.0.0.1' port {port}" in video["trouble"]
    assert video["frames"] == 0
    assert next(frames_of(events))["index"] == 0


def test_cameras_share_executions_of_the_detector(watch, film):
    import camera

    # Faster than any machine detects: a frame of each camera always waits. All frames are wanted.
    played = camera.Film(film.file)
    played.rate = 10_000
    url = f"rtsp://127.0.0.1:{camera.start(played, 0)}/film"
    with contextlib.closing(watch(**{f"v{number}": url for number in range(8)})) as running:
        events = frames_of(running.events())

        seen = [next(events)["video"] for _ in range(100)]

        requests, executions = running.counts("detect")
    assert len(set(seen)) == 8
    assert executions < requests


@pytest.mark.parametrize("value", ["hall", "=rtsp://x", "a b=rtsp://x", "hall=", "küche=rtsp://x"])
def test_a_wrong_option_says_what_one_is(watch, value):
    name, _, url = value.partition("=")

    with pytest.raises(CoreError, match="must be NAME=URL, such as hall="):
        watch(**{name: url})


def test_the_camera_plays_the_film_again_and_again(film):
    import av
    import camera

    port = camera.start(camera.Film(film.file), 0)
    with av.open(str(film.file)) as container:
        direct = [each.to_ndarray(format="rgb24") for each in container.decode(video=0)]

    options = {"rtsp_transport": "tcp"}
    with av.open(f"rtsp://127.0.0.1:{port}/film", options=options) as container:
        for number, frame in enumerate(container.decode(video=0)):
            assert (frame.to_ndarray(format="rgb24") == direct[number % FRAMES]).all()
            if number == FRAMES + 5:
                break


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_gstreamer_plays_the_film_again_and_again(film, transport):
    import av
    import gstreamer

    if not gstreamer.is_there():
        pytest.skip(
            "GStreamer's RTSP server is not installed: apt install gir1.2-gst-rtsp-server-1.0"
        )
    url = gstreamer.start(film.file)
    with av.open(str(film.file)) as container:
        direct = [each.to_ndarray(format="rgb24") for each in container.decode(video=0)]

    options = {"rtsp_transport": transport}
    with av.open(url, options=options, timeout=60) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if transport == "tcp":  # a busy machine loses packets of the other
                assert (frame.to_ndarray(format="rgb24") == direct[number % FRAMES]).all()
            if number == FRAMES + 5:
                break


@pytest.mark.parametrize("has_gstreamer", [True, False])
def test_the_cameras_of_the_server_are_those_of_gstreamer_where_it_is(
    tmp_path, monkeypatch, capsys, has_gstreamer
):
    import gstreamer
    import serve

    monkeypatch.setattr(serve, "FILMS", tmp_path)
    monkeypatch.setattr(serve, "SECONDS", 0.4)
    monkeypatch.setattr(gstreamer, "is_there", lambda: has_gstreamer)
    monkeypatch.setattr(gstreamer, "start", lambda film: f"rtsp://gstreamer/{film.stem}")

    urls = serve.cameras()

    assert list(urls) == ["bouncing", "crossing"]
    assert (urls["bouncing"] == "rtsp://gstreamer/bouncing") == has_gstreamer
    told = "by GStreamer" if has_gstreamer else "by camera.py, as GStreamer's RTSP server is not"
    assert f"camera {urls['crossing']} {told}" in capsys.readouterr().out


def test_a_python_without_gstreamer_is_known(tmp_path):
    import gstreamer

    assert not gstreamer.is_there(str(tmp_path / "python3"))


def test_the_page_shows_pictures_and_tracks(one, browser):
    problems = []

    page = browser.new_page(viewport={"width": 1180, "height": 620})
    page.on("pageerror", lambda error: problems.append(error.message))
    page.on("console", lambda message: problems.append(message.text))
    page.goto(one.url)
    page.locator("#tracks tr").nth(5).wait_for()
    page.wait_for_function("document.images[0].naturalWidth == 768")
    shown = page.locator("#tracks td b").all_inner_texts()
    if picture := os.environ.get("WATCH_PICTURE"):
        page.wait_for_timeout(3000)
        page.screenshot(path=picture)

    assert len(shown) == 6 and all(each.startswith("#") for each in shown)
    assert problems == []
