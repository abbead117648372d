"""Memory stays flat over loads and over streams. LOADS=1000 is the long form."""

import os

import numpy as np
from backend_tracker import backend
from backend_tracker.native.streams import Streams
from backend_tracker.scenes import scene
from core_testing.leftovers import growth
from core_testing.served import request_of

from core.request import SEQUENCE_START

pytest_plugins = ["core_testing.plugin"]

LOADS = int(os.environ.get("LOADS", "60"))
MOST_BYTES = 3 << 20  # of growth; a leak of one model with its streams would be more


def grows_by(act, count):
    """Return the growth of the resident memory over `count // 2` calls, after some to warm up, in bytes."""
    for _ in range(max(10, count // 4)):
        act()
    return growth(act, count // 2)


def test_loads_leave_no_memory_behind(model_repository, serve_repository):
    model_repository.add("cars", 'backend: "tracker"')
    served = serve_repository(backend)
    boxes = np.tile(np.array([0, 0, 5, 5], np.float32), (1, 500, 1))

    def load_and_track():
        for sequence in range(1, 20):  # they do not end: the unload ends them
            request = request_of({"boxes": boxes}, name="cars")
            request.correlation_id, request.flags = sequence, SEQUENCE_START
            served.send([request])
        served.unload("cars")
        served.load("cars")

    assert grows_by(load_and_track, LOADS) < MOST_BYTES


def test_a_stream_keeps_only_its_live_tracks(read_settings):
    streams = Streams(read_settings("ocsort"))
    frames = scene(seed=2, frames=60, objects=30)
    empty = np.empty((0, 4), np.float32), np.empty(0, np.float32), np.empty(0, np.int32)
    stream = streams.begin()

    def track():
        for frame in frames:
            streams.update(stream, frame.boxes, frame.scores, frame.classes)

    assert grows_by(track, 100) < MOST_BYTES
    assert len(stream) > 0
    for _ in range(40):
        streams.update(stream, *empty)
    assert len(stream) == 0


def test_streams_that_end_leave_no_memory_behind(read_settings):
    streams = Streams(read_settings())
    frame = scene(seed=2, frames=1, objects=50, missed=0)[0]

    def begin_many():
        many = [streams.begin() for _ in range(500)]
        for stream in many:
            streams.update(stream, frame.boxes, frame.scores, frame.classes)

    assert grows_by(begin_many, 40) < MOST_BYTES
