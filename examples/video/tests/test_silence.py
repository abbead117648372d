"""The plugin with cameras that are silent, lost or unloaded, and models that fail: without a server."""

import asyncio
import logging
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from core.errors import CoreError, unavailable
from core.tensor import Tensor

S = 1_000_000_000


def frame(index=0, gap=0):
    numbers = {"index": index, "pts": index, "gap": gap, "dropped": 0}
    found = {name: Tensor.of(name, np.array([each], np.int64)) for name, each in numbers.items()}
    found["notice"] = Tensor.of("notice", np.array([b""], object))
    found["frame"] = Tensor.of("frame", np.zeros((3, 2), np.uint8))
    return SimpleNamespace(output=found.__getitem__)


def answer(*names):
    """Return an answer of the tracker without objects, with these outputs."""
    nothing = np.zeros((1, 0), np.float32)
    return SimpleNamespace(outputs=[Tensor.of(name, nothing) for name in names])


class Models:
    """The models. `frames` are those of each request to the camera; None waits until it is cancelled."""

    def __init__(self, *frames):
        self.frames = frames
        self.asked = []
        self.requests = []  # to the camera
        self.streams = []  # tasks that answer them
        self.trouble = ""  # of the tracker
        self.found = None  # the answer of the tracker

    def is_ready(self, name):
        return True

    def infer(self, request):
        self.asked.append(request)
        if request.model_name == "camera":
            self.requests.append(request)
            return SimpleNamespace(listen=partial(self._stream, request))
        if request.model_name == "follow_objects":
            return SimpleNamespace(listen=lambda listener: None)
        return self._answer(request)

    def _stream(self, request, listener):
        self.streams.append(asyncio.ensure_future(self._send(request, listener)))

    async def _send(self, request, listener):
        for each in self.frames:
            if each is None:
                cancelled = asyncio.Event()
                request.on_cancel(cancelled.set)
                await cancelled.wait()
                listener(unavailable("the request was cancelled"), True)
                return
            free = asyncio.Event()
            request.when_free(free.set)
            await free.wait()
            listener(each() if callable(each) else each, False)
        listener(None, True)

    async def _answer(self, request):
        if request.model_name == "show_tracks":
            raise unavailable("model 'show_tracks' is not ready")
        if self.trouble:
            raise unavailable(self.trouble)
        return self.found


@pytest.fixture
def clock(monkeypatch):
    """The time that the plugin sees: `clock.ns`."""
    from core_watch import silence, watching

    made = SimpleNamespace(ns=S)
    made.monotonic_ns = lambda: made.ns
    made.monotonic = lambda: made.ns / S
    for module in (silence, watching):
        monkeypatch.setattr(module, "time", made)
    return made


def watch_of(models):
    from core_watch.watching import Watching

    watching = Watching(SimpleNamespace(models=models))
    watching.add("hall", "rtsp://hall/film")
    return watching


def passed(clock, seconds, made):
    """Return a function: `made`, after so many seconds."""

    def run():
        clock.ns += int(seconds * S)
        return made

    return run


def test_tracks_begin_anew_when_no_frame_came_for_long(clock):
    models = Models(frame(), passed(clock, 4, frame(1)), passed(clock, 6, frame(2)))
    (video,) = watch_of(models).videos.values()

    asyncio.run(video._watch())

    assert video.frames == 3
    assert [each.correlation_id for each in models.asked if each.model_name == "track_frame"] == [
        "hall/1",
        "hall/1",
        "hall/2",
    ]


def test_silence_is_trouble_until_the_next_frame(clock, caplog):
    troubles = []

    def look(seconds, made):
        def run():
            for _ in range(2):
                clock.ns += int(seconds * S / 2)
                video.look()
            troubles.append(video.trouble)
            return made

        return run

    pauses = (1.9, 7, 0.1, 7, 3, 3, 8.5, 0.1)
    models = Models(frame(), *(look(each, frame(i + 1)) for i, each in enumerate(pauses)))
    (video,) = watch_of(models).videos.values()

    with caplog.at_level(logging.WARNING, "core"):
        asyncio.run(video._watch())

    # One pause is no habit: only after two long ones is the third no trouble.
    told = "no frame for more than 2 s"
    assert troubles == ["", told, "", told, told, "", "", ""]
    assert video.trouble == ""
    assert len(caplog.records) == 3


def test_a_camera_that_unloads_loses_its_request_and_gets_another_one():
    models = Models(frame(), None)
    watching = watch_of(models)
    (video,) = watching.videos.values()

    async def run():
        watching.start()
        while video.frames < 1:
            await asyncio.sleep(0.01)
        watching.unloads("detect")
        assert not models.requests[0].cancelled
        watching.unloads("camera")
        while not video.trouble:
            await asyncio.sleep(0.01)
        trouble = video.trouble
        while video.frames < 2:
            await asyncio.sleep(0.01)
        cancelled = [each.cancelled for each in models.requests]
        await watching.close()
        return trouble, cancelled

    trouble = "model 'camera' is unloaded, or loaded anew"
    assert asyncio.run(run()) == (trouble, [True, False])


def test_an_unload_between_two_requests_ends_none_of_them():
    models = Models(frame())
    (video,) = watch_of(models).videos.values()

    asyncio.run(video._watch())
    video.give_up()

    assert video._gave_up is False
    assert [each.cancelled for each in models.requests] == [False]


def test_a_failure_of_the_tracker_is_told_as_what_it_is():
    models = Models(frame(), None)
    models.trouble = "model 'detect' is out of memory"
    watching = watch_of(models)
    (video,) = watching.videos.values()
    video.trouble = ""

    async def run():
        watching.start()
        while not video.trouble:
            await asyncio.sleep(0.01)
        await watching.close()

    asyncio.run(run())

    assert video.trouble == "model 'detect' is out of memory"


def test_a_tracker_without_labels_is_trouble_for_who_reads_events_until_it_has_them():
    models = Models(frame(), None)
    models.found = answer("ids", "scores", "boxes")
    watching = watch_of(models)
    (video,) = watching.videos.values()

    async def run():
        told = aiter(watching.events.join())
        watching.start()
        first = await anext(told)
        models.found = answer("ids", "labels", "scores", "boxes")
        while not video.frames:
            await asyncio.sleep(0.01)
        await watching.close()
        return first

    told = "model 'track_frame' has the outputs ['boxes', 'ids', 'scores']; expected 'labels' too"
    assert told.encode() in asyncio.run(run())
    assert video.trouble == ""


def test_a_video_is_tried_again_after_any_error(caplog):
    broken = SimpleNamespace(output={}.__getitem__)  # has none of the outputs of a camera
    models = Models(broken)
    watching = watch_of(models)
    (video,) = watching.videos.values()

    async def run():
        watching.start()
        while len(models.requests) < 2:
            await asyncio.sleep(0.01)
        await watching.close()

    with caplog.at_level(logging.WARNING, "core"):
        asyncio.run(run())

    assert video.trouble == "an error of the plugin: KeyError('gap')"
    assert len(caplog.records) == 1


def test_a_picture_without_what_it_needs_is_told(caplog):
    (video,) = watch_of(Models()).videos.values()

    with caplog.at_level(logging.WARNING, "core"):
        asyncio.run(video._draw(frame(), answer("boxes", "ids")))

    assert "no picture of 'hall': model 'track_frame' has the outputs" in caplog.text


def test_the_plugin_hears_of_a_model_that_unloads(monkeypatch):
    import core_watch

    heard = []
    monkeypatch.setattr(core_watch, "_all", [SimpleNamespace(unloads=heard.append)])

    for state in ("loading", "ready", "unloading", "gone"):
        core_watch.core_model_changed(SimpleNamespace(name="camera"), state)

    assert heard == ["camera"]


def test_pictures_that_fail_are_told_once(caplog):
    models = Models()
    (video,) = watch_of(models).videos.values()
    found = answer("boxes", "labels", "ids")

    async def run():
        for _ in range(3):
            await video._draw(frame(), found)

    with caplog.at_level(logging.WARNING, "core"):
        asyncio.run(run())

    assert len(caplog.records) == 1
    assert "no picture of 'hall': model 'show_tracks' is not ready" in caplog.text


@pytest.mark.parametrize(
    ("value", "begin"),
    [
        ("küche=rtsp://user:secret@x", "--watch=küche=… must be NAME=URL"),
        ("a b=rtsp://user:secret@x", "--watch=a b=… must be"),
        ("rtsp://user:secret@x", "--watch must be"),
        ("rtsp://user:secret@x?a=b", "--watch must be"),
        ("secret", "--watch must be"),
    ],
)
def test_a_wrong_option_tells_no_password(value, begin):
    import core_watch

    with pytest.raises(CoreError, match="a name has letters of ASCII, digits") as error:
        core_watch.parsed(value)

    assert error.value.message.startswith(begin)
    assert "secret" not in error.value.message


def test_a_server_without_http_watches_nothing():
    import core_watch

    options = SimpleNamespace(added={"watch": ["hall=rtsp://x"]}, workers=1, listeners=list)

    with pytest.raises(CoreError, match="--watch needs --allow-http=true"):
        core_watch.core_server_starting(SimpleNamespace(options=options))


def test_the_server_of_the_example_is_for_clients_of_this_machine():
    import serve

    assert {"--http-address=127.0.0.1", "--grpc-address=127.0.0.1"} < set(serve.defaults([]))
    own = serve.defaults(["--http-address=10.0.0.1", "--model-repository=x"])
    assert own == ["--grpc-address=127.0.0.1"]
