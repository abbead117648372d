"""EXECUTION_MODE process: FFmpeg runs in a child process, where a cancelled request ends its decoder, too."""

import contextlib
import itertools
import os
import signal
import time

import numpy as np
import pytest
from backend_video.films import film, number_in
from core_testing import leftovers

import core
from core.errors import CoreError

ONE = "instance_group { count: 1 kind: KIND_CPU }"
TWO = "instance_group { count: 2 kind: KIND_CPU }"
APART = """
parameters { key: "EXECUTION_MODE" value { string_value: "process" } }
"""


@pytest.fixture(scope="module")
def apart(tmp_path_factory, config):
    pytest.importorskip("backend_python", reason="backend-python runs the processes")
    repository = tmp_path_factory.mktemp("apart")
    rules = {"hosts": "127.0.0.1:*", "networks": "127.0.0.0/8"}
    with serve(repository, config(rules, ONE + APART)) as running:
        yield running


def serve(repository, text):
    """Return a server of the model `video` with this config.pbtxt."""
    (repository / "video" / "1").mkdir(parents=True)
    (repository / "video" / "config.pbtxt").write_text(text)
    return core.Server(model_repository=str(repository))


def processes():
    """Return the process ids of the children of children, in which instances run."""
    return {pid for child in leftovers.children() for pid in leftovers.children(child)}


def test_a_child_process_decodes(apart, film50):
    answers = list(apart.stream("video", {"file": [film50]}, parameters={"every": 7}))

    assert [number_in(each["frame"]) for each in answers] == list(range(0, 50, 7))


def test_a_cancelled_request_ends_in_the_child_process(apart, film50, listener):
    """The source says nothing for ten seconds; the only decoder is free long before."""
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
    waiting = apart.stream("video", {"url": [url]})
    connection, _ = listener.accept()
    begin = time.monotonic()

    waiting.close()
    answers = list(apart.stream("video", {"file": [film50]}, parameters={"frames": 1}))

    assert len(answers) == 1
    assert time.monotonic() - begin < 5
    connection.close()


def test_a_client_that_leaves_ends_a_long_film(apart, film50):
    answers = apart.stream("video", {"file": [film50]}, parameters={"realtime": True})
    next(answers)
    begin = time.monotonic()

    answers.close()
    list(apart.stream("video", {"file": [film50]}, parameters={"frames": 1}))

    assert time.monotonic() - begin < 1.5


def test_a_camera_does_not_wait_for_a_slow_client_of_a_child_process(apart, site, eventually):
    """The process learns that the client is behind, and lets older frames make way for newer ones."""
    noise = np.random.default_rng(0).integers(0, 256, (480, 640, 3), np.uint8)
    data = film(20, container="mpjpeg", width=640, height=480, picture=lambda *_: noise)
    data = data[: data.rindex(b"--ffmpeg")]  # the next frame has a boundary of its own
    sent = []

    def page(handler):
        handler.close_connection = True
        handler.answer(200, [("Content-Type", "multipart/x-mixed-replace;boundary=frame")])
        while True:  # until the client has left
            handler.wfile.write(data)
            sent.append(20)

    site.pages["/cam"] = page
    answers = apart.stream("video", {"url": [f"{site.url}/cam"]}, parameters={"policy": "latest"})
    with contextlib.closing(answers):
        next(answers)
        # Frames of 0.9 MB each: more than wait for the client (24 MB) and in sockets.
        eventually(lambda: sum(sent) > 200)

        dropped = [int(each["dropped"][0]) for each in itertools.islice(answers, 60)]

    assert max(dropped) > 50


def test_a_process_that_crashes_ends_the_stream_of_its_instance_only(tmp_path, config, film50):
    pytest.importorskip("backend_python", reason="backend-python runs the processes")
    others = processes()
    with serve(tmp_path, config({}, TWO + APART)) as running:
        parameters = {"realtime": True}
        (first, *_) = sorted(processes() - others)
        streams = [
            running.stream("video", {"file": [film50]}, parameters=parameters) for _ in range(2)
        ]
        for each in streams:
            next(each)

        os.kill(first, signal.SIGSEGV)
        ended = [outcome(each) for each in streams]
        again = list(running.stream("video", {"file": [film50]}, parameters={"frames": 2}))

    assert sorted(ended, key=str)[0] == 49
    assert "is not healthy" in sorted(ended, key=str)[1]
    assert [number_in(each["frame"]) for each in again] == [0, 1]


def outcome(answers):
    """Return the number of answers that are left, or the text of the error that ends them."""
    try:
        return len(list(answers))
    except CoreError as error:
        return error.message
