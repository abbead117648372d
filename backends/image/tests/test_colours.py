"""The order of colours is turned by OpenCV: numpy takes fifty times as long."""

import time

import cv2
import numpy as np
import pytest
from backend_image.colours import turned
from backend_image.shape import Geometry, Letterbox


def shortest(function):
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("view", [np.s_[:], np.s_[::2, ::-1], np.s_[3:4, 5:6]])
def test_channels_are_turned_and_nothing_else(pictures, channels, view):
    pixels = np.dstack([pictures.pixels(1, 20, 30)] * 2)[..., :channels][view]
    pixels.flags.writeable = False

    found = turned(pixels)

    np.testing.assert_array_equal(found, pixels[..., ::-1])
    assert found.flags.c_contiguous


def test_turning_is_faster_than_numpy(pictures):
    pixels = pictures.pixels(1, 576, 768)

    ours = shortest(lambda: turned(pixels))

    assert ours < shortest(lambda: np.ascontiguousarray(pixels[..., ::-1])) / 3


def test_a_canvas_is_made_and_filled_only_where_it_can_be_seen(pictures, options, monkeypatch):
    picture = pictures.pixels(1, 30, 40)
    made = []

    class Canvas(np.ndarray):
        filled = 0

        def fill(self, value):
            self.filled += 1
            super().fill(value)

        def __setitem__(self, key, value):
            self.filled += 1
            super().__setitem__(key, value)

    def empty(shape, dtype):
        made.append(np.ndarray(shape, dtype).view(Canvas))
        return made[-1]

    monkeypatch.setattr("backend_image.shape.np.empty", empty)

    for size in ([60, 80], [60, 60]):
        step = Letterbox(options(size=size), 3)
        found = step(picture, Geometry(40, 30))
        if size == [60, 80]:
            np.testing.assert_array_equal(found, cv2.resize(picture, (80, 60)))

    (seen,) = made
    assert seen.filled == 1
