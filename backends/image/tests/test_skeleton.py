"""Keypoints: from heatmaps of either layout, and drawn with the lines between them."""

import io

import cv2
import numpy as np
import pytest
from backend_image.draw import colour_of
from PIL import Image

pytest_plugins = ["core_testing.plugin"]

LINES = [[0, 1], [1, 2]]


@pytest.fixture
def drawn(serve, as_files, pictures):
    """drawn(points, **options): serve a model that draws, and return the pixels and the model's answer."""
    black = pictures.file(np.zeros((40, 60, 3), np.uint8), "PNG")

    def run(points, **options):
        steps = [{"draw_keypoints": options}, {"encode": {"format": "png"}}]
        served = serve(steps)
        return served.answer(image=as_files(black), keypoints=np.array([points], np.float32))

    return run


def shown(answer):
    return np.asarray(Image.open(io.BytesIO(answer["picture"][0, 0])).convert("RGB"))


def maps_of(seed, rows, points):
    return np.random.default_rng(seed).normal(size=(rows, points, 12, 9)).astype(np.float32)


def test_maps_with_the_points_last_are_read(serve):
    maps = maps_of(1, 2, 5)
    served = serve(
        [{"keypoints": {"input_size": [48, 36], "layout": "NHWC", "sigmoid": True, "points": 3}}]
    )

    found = served.ask(heatmaps=np.ascontiguousarray(maps.transpose(0, 2, 3, 1)))["keypoints"]

    assert found.shape == (2, 3, 3)
    for row, points in zip(maps, found, strict=True):
        for each, (x, y, score) in zip(row, points, strict=False):
            top, left = np.unravel_index(each.argmax(), each.shape)
            assert abs(x / 4 - left) <= 0.25
            assert abs(y / 4 - top) <= 0.25
            np.testing.assert_allclose(score, 1 / (1 + np.exp(-each.max())), rtol=1e-6)


@pytest.mark.filterwarnings("error:overflow")
def test_the_sigmoid_of_very_low_values_is_0_without_a_warning(serve):
    served = serve([{"keypoints": {"input_size": [48, 36], "sigmoid": True}}])

    found = served.ask(heatmaps=np.full((1, 2, 12, 9), -1e5, np.float32))["keypoints"]

    assert found[0, :, 2].tolist() == [0, 0]


def test_lines_and_points_are_those_of_opencv(drawn):
    points = [[5, 5, 0.9], [50, 8, 0.8], [30, 35, 0.7], [10, 30, 0.1]]
    expected = np.zeros((40, 60, 3), np.uint8)
    for number, (one, other) in enumerate([((5, 5), (50, 8)), ((50, 8), (30, 35))]):
        cv2.line(expected, one, other, colour_of(number), 1, cv2.LINE_AA)
    for place in ((5, 5), (50, 8), (30, 35)):
        cv2.circle(expected, place, 2, (255, 255, 255), -1, cv2.LINE_AA)

    found = drawn(points, lines=LINES, thickness=1, radius=2)

    np.testing.assert_array_equal(shown(found), expected[..., ::-1])


def test_a_line_to_a_weak_point_is_not_drawn(drawn):
    points = [[5, 5, 0.9], [50, 8, 0.2], [30, 35, np.nan]]

    found = shown(drawn(points, lines=LINES, radius=1))

    assert found[5, 5].min() == 255
    assert found[6:, 10:].max() == 0


def test_points_far_outside_of_the_picture_are_drawn(drawn):
    found = drawn([[-1e30, 5, 1], [1e30, 5, 1], [np.inf, 0, 1]], lines=LINES)

    assert shown(found)[5, 30].max() > 100


def test_fewer_points_than_the_lines_need_are_refused(drawn):
    found = drawn([[5, 5, 1]], lines=LINES)

    assert "'keypoints' has 1 points, and lines of image.json name point 2" in found.message
