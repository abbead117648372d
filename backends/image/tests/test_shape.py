"""Sizes: the pixels of OpenCV or PIL, and a geometry that leads back to the original picture."""

import cv2
import numpy as np
import pytest
from backend_image.shape import Crop, Geometry, Letterbox, Resize, Scaler
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

OPENCV = {
    "nearest": cv2.INTER_NEAREST,
    "bilinear": cv2.INTER_LINEAR,
    "bicubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_AREA,
    "lanczos": cv2.INTER_LANCZOS4,
}
PIL = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "area": Image.Resampling.BOX,
    "lanczos": Image.Resampling.LANCZOS,
}
SIDES = st.integers(1, 70)


def geometry_of(picture):
    return Geometry(picture.shape[1], picture.shape[0])


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(OPENCV)), st.booleans(), SIDES, SIDES, SIDES, SIDES, st.integers(0, 99)
)
def test_a_resized_picture_is_that_of_the_named_library(
    pictures, options, method, pil, height, width, to_height, to_width, seed
):
    picture = pictures.pixels(seed, height, width)
    like = "pil" if pil else "opencv"

    step = Resize(options(size=[to_height, to_width], method=method, like=like))
    found = step(picture, geometry_of(picture))

    if pil:
        expected = Image.fromarray(picture).resize((to_width, to_height), PIL[method])
    else:
        expected = cv2.resize(picture, (to_width, to_height), interpolation=OPENCV[method])
    np.testing.assert_array_equal(found, np.asarray(expected))


ODD = st.sampled_from([1, 3, 5, 7, 49, 93, 99])  # 1 / (1 / 93) is less than 93


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(OPENCV)), ODD, ODD, st.integers(1, 9), st.integers(1, 9), st.booleans()
)
def test_a_picture_that_is_an_odd_number_of_times_as_large_is_that_of_opencv(
    options, method, down, across, height, width, on_a_canvas
):
    shape = (height * down, width * across, 3)
    picture = np.random.default_rng(7).integers(0, 256, shape, np.uint8)
    out = np.zeros((height + 2, width + 3, 3), np.uint8)[1:-1, 1:-2] if on_a_canvas else None

    found = Scaler(options(method=method))(picture, height, width, out)

    expected = cv2.resize(picture, (width, height), interpolation=OPENCV[method])
    np.testing.assert_array_equal(found, expected)
    assert out is None or found is out


@pytest.mark.parametrize(
    "given, size, expected",
    [
        ({"shorter": 50}, (100, 301), (50, 150)),
        ({"shorter": 50}, (301, 100), (150, 50)),
        ({"longer": 50}, (100, 301), (16, 50)),
        ({"longer": 50}, (1, 1000), (1, 50)),
        ({"shorter": 256}, (480, 640), (256, 341)),
    ],
)
def test_the_other_side_is_rounded_down(pictures, options, given, size, expected):
    picture = pictures.pixels(1, *size)

    assert Resize(options(**given))(picture, geometry_of(picture)).shape[:2] == expected


@settings(max_examples=60)
@given(SIDES, SIDES, SIDES, SIDES, st.booleans())
def test_a_letterbox_is_the_picture_on_a_canvas(
    pictures, options, height, width, to_height, to_width, enlarge
):
    picture = pictures.pixels(1, height, width)
    scale = min(to_height / height, to_width / width, *([] if enlarge else [1]))
    inner = max(1, round(height * scale)), max(1, round(width * scale))
    expected = np.full((to_height, to_width, 3), (30, 20, 10), np.uint8)
    top, left = (to_height - inner[0]) // 2, (to_width - inner[1]) // 2
    expected[top : top + inner[0], left : left + inner[1]] = cv2.resize(
        picture, inner[::-1], interpolation=cv2.INTER_LINEAR
    )

    step = Letterbox(options(size=[to_height, to_width], fill=[10, 20, 30], enlarge=enlarge), 3)

    np.testing.assert_array_equal(step(picture, geometry_of(picture)), expected)


@settings(max_examples=60)
@given(SIDES, SIDES, SIDES, SIDES)
def test_a_crop_is_the_middle_with_borders_where_the_picture_is_smaller(
    pictures, options, height, width, to_height, to_width
):
    picture = pictures.pixels(1, height, width)
    missing = max(0, to_height - height), max(0, to_width - width)
    padded = np.pad(picture, [*((each // 2, each - each // 2) for each in missing), (0, 0)])
    top, left = round((padded.shape[0] - to_height) / 2), round((padded.shape[1] - to_width) / 2)

    found = Crop(options(size=[to_height, to_width]))(picture, geometry_of(picture))

    np.testing.assert_array_equal(found, padded[top : top + to_height, left : left + to_width])


def test_a_crop_copies_no_pixel(pictures, options):
    picture = pictures.pixels(1, 50, 60)

    found = Crop(options(size=20))(picture, geometry_of(picture))

    assert np.shares_memory(found, picture)


def test_the_geometry_leads_from_the_tensor_back_to_the_picture(options):
    """A white square keeps its place through resize, letterbox and crop."""
    picture = np.zeros((300, 500, 3), np.uint8)
    picture[120:180, 220:320] = 255
    geometry = geometry_of(picture)

    for step in (
        Resize(options(shorter=150)),
        Letterbox(options(size=200), 3),
        Crop(options(size=160)),
    ):
        picture = step(picture, geometry)

    y, x = np.nonzero(picture[..., 0] == 255)
    width, height, scale_x, scale_y, left, top = geometry.array()
    assert (width, height) == (500, 300)
    assert abs((x.min() - left) / scale_x - 220) < 4
    assert abs((x.max() + 1 - left) / scale_x - 320) < 4
    assert abs((y.min() - top) / scale_y - 120) < 4
    assert abs((y.max() + 1 - top) / scale_y - 180) < 4
