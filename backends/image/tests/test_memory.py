"""Memory stays flat over loads and requests. LOADS=1000 is the long form."""

import json
import os

from backend_image import backend
from backend_image.recipe import FILE
from core_testing.leftovers import growth

pytest_plugins = ["core_testing.plugin"]

LOADS = int(os.environ.get("LOADS", "60"))
MOST_BYTES = 4 << 20

STEPS = [{"decode": {}}, {"letterbox": {"size": 320}}, {"tensor": {"scale": 255}}]


def grows_by(act, count):
    """Return the growth of the resident memory over `count // 2` calls, after some to warm up, in bytes."""
    for _ in range(max(20, count // 4)):
        act()
    return growth(act, count // 2)


def test_loads_leave_no_memory_behind(model_repository, serve_repository, pictures, as_files):
    model_repository.add("model", files={FILE: json.dumps(STEPS)})
    served = serve_repository(backend)
    image = as_files(pictures.file(pictures.pixels(1, 200, 300)))

    def load_and_ask():
        served.ask({"image": image}, name="model")
        served.unload("model")
        served.load("model")

    assert grows_by(load_and_ask, LOADS) < MOST_BYTES


def test_pictures_and_refused_files_leave_no_memory_behind(serve, pictures, as_files):
    served = serve(STEPS)
    good = as_files(*(pictures.file(pictures.pixels(i, 200, 300)) for i in range(8)))
    bad = as_files(good[0, 0][:-100])

    def ask():
        served.together([{"image": good}, {"image": bad}])

    assert grows_by(ask, 60) < MOST_BYTES
