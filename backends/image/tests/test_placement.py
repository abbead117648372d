"""Where a stage runs: what a client can make long has a thread, also after many short requests."""

import json
from types import SimpleNamespace

import pytest
from backend_image.backend import ImageInstance
from backend_image.recipe import FILE, read_recipe

DECODE = [{"decode": {}}, {"letterbox": {"size": 320}}, {"tensor": {"scale": 255}}]


@pytest.mark.parametrize(
    ("steps", "placement"),
    [
        (DECODE, "thread"),
        ([{"encode": {}}], "thread"),
        ([{"draw": {}}, {"encode": {}}], "thread"),
        ([{"draw_keypoints": {}}, {"encode": {}}], "thread"),
        ([{"detections": {}}], "auto"),
        ([{"top_k": {}}], "auto"),
    ],
)
def test_only_stages_that_no_picture_makes_long_may_run_on_the_loop(tmp_path, steps, placement):
    (tmp_path / FILE).write_text(json.dumps(steps))
    instance = ImageInstance()
    instance.model = SimpleNamespace(stage=read_recipe(tmp_path / FILE))

    instance.open()

    assert instance.placement == placement
