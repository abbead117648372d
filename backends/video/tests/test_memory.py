"""Memory stays flat over loads, streams and refused files. LOADS=1000 is the long form."""

import os

from backend_video import backend
from backend_video.films import film
from core_testing.leftovers import growth

from core.errors import CoreError

pytest_plugins = ["core_testing.plugin"]

LOADS = int(os.environ.get("LOADS", "30"))
MOST_BYTES = 4 << 20


def grows_by(act, count):
    """Return the growth of the resident memory over `count // 2` calls, after some to warm up, in bytes."""
    for _ in range(max(20, count // 4)):
        act()
    return growth(act, count // 2)


def test_loads_and_streams_leave_no_memory_behind(model_repository, serve_repository, as_bytes):
    model_repository.add("video", 'backend: "video"')
    served = serve_repository(backend)
    good = as_bytes(film(10, width=160, height=120))
    bad = as_bytes(good[0][: len(good[0]) // 2])

    def act():
        assert len(served.stream({"file": good}, "video")) == 10
        try:
            served.stream({"file": bad}, "video")
        except CoreError:
            pass
        served.after_cancelling({"file": good}, "video")
        served.unload("video")
        served.load("video")

    assert grows_by(act, LOADS) < MOST_BYTES
