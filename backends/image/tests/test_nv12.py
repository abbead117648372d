"""Pictures of videos: NV12, brightness apart from the colours."""

import io

import cv2
import numpy as np
import pytest
from backend_image.headers import NoPicture
from backend_image.nv12 import Nv12
from backend_image.shape import Crop, Geometry, Letterbox, Resize
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from core.errors import CoreError

pytest_plugins = ["core_testing.plugin"]

METHODS = {
    "nearest": cv2.INTER_NEAREST,
    "bilinear": cv2.INTER_LINEAR,
    "bicubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_AREA,
    "lanczos": cv2.INTER_LANCZOS4,
}
TENSOR = {"tensor": {"datatype": "UINT8", "layout": "NHWC"}}


def nv12_of(pixels):
    """Return the NV12 values of pixels with even sides, by way of I420."""
    height, width = pixels.shape[:2]
    planes = cv2.cvtColor(pixels, cv2.COLOR_RGB2YUV_I420)
    colours = planes[height:].reshape(2, -1)
    return np.concatenate([planes[:height], colours.T.reshape(height // 2, width)])


def formula(values):
    """Return the pixels by the formula of BT.601, in float64, each colour for its 2 x 2 pixels."""
    height, width = values.shape[0] * 2 // 3, values.shape[1]
    y = 255 / 219 * (values[:height].astype(float) - 16)
    colours = values[height:].reshape(height // 2, width // 2, 2).astype(float) - 128
    blue, red = (colours[..., i].repeat(2, axis=0).repeat(2, axis=1) * 255 / 224 for i in (0, 1))
    found = np.stack(
        [
            y + 1.402 * red,
            y - 0.344136 * blue - 0.714136 * red,
            y + 1.772 * blue,
        ],
        axis=-1,
    )
    return found.round().clip(0, 255)


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 99), st.booleans())
def test_the_pixels_are_those_of_the_formula_within_one_level(height, width, seed, red_first):
    values = np.random.default_rng(seed).integers(0, 256, (3 * height, 2 * width), np.uint8)

    found = Nv12(values).pixels(red_first=red_first)

    found = found if red_first else found[..., ::-1]
    assert found.shape == Nv12(values).shape == (2 * height, 2 * width, 3)
    # Brightness below 16 is none.
    expected = formula(np.concatenate([values[: 2 * height].clip(16), values[2 * height :]]))
    assert np.abs(found.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [[192, 256], [100, 120], [576, 768], [38, 50]])
def test_a_smaller_picture_is_mixed_from_the_scaled_parts(pictures, options, method, size):
    values = nv12_of(pictures.pixels(3, 576, 768))
    height, width = size

    found = Resize(options(size=size, method=method))(Nv12(values), Geometry(768, 576))

    if size == [576, 768]:
        assert isinstance(found, Nv12)  # nothing is to be done yet
        return
    how = METHODS[method]
    brightness = cv2.resize(values[:576], (width, height), interpolation=how)
    colours = values[576:].reshape(288, 384, 2)
    colours = cv2.resize(colours, (width // 2, height // 2), interpolation=how)
    expected = cv2.cvtColorTwoPlane(brightness, colours, cv2.COLOR_YUV2RGB_NV12)
    np.testing.assert_array_equal(found, expected)


def test_a_smaller_picture_looks_like_one_that_was_mixed_before(pictures, options):
    coarse = pictures.pixels(3, 24, 32)
    values = nv12_of(cv2.resize(coarse, (768, 576), interpolation=cv2.INTER_CUBIC))
    resize = Resize(options(size=[192, 256]))

    found = resize(Nv12(values), Geometry(768, 576))

    expected = resize(Nv12(values).pixels(), Geometry(768, 576))
    difference = np.abs(found.astype(int) - expected)
    assert difference.mean() < 1.5
    assert np.quantile(difference, 0.999) < 12


@pytest.mark.parametrize(
    "step, given",
    [
        (Resize, {"size": [191, 255]}),  # odd: no colours of 2 x 2 pixels
        (Resize, {"size": [90, 101]}),
        (Resize, {"size": [400, 300]}),  # larger
        (Resize, {"size": [100, 120], "like": "pil"}),
        (Crop, {"size": [101, 120]}),
    ],
)
def test_other_steps_take_the_mixed_pixels(pictures, options, step, given):
    values = nv12_of(pictures.pixels(4, 300, 400))

    found = step(options(**given))(Nv12(values), Geometry(400, 300))

    expected = step(options(**given))(Nv12(values).pixels(), Geometry(400, 300))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "size, inner", [([64, 64], [48, 64]), ([65, 64], [48, 64]), ([64, 200], [64, 85])]
)
def test_a_letterbox_has_the_scaled_picture_in_its_canvas(pictures, options, size, inner):
    values = nv12_of(pictures.pixels(4, 300, 400))
    geometry, other = Geometry(400, 300), Geometry(400, 300)
    box = Letterbox(options(size=size, fill=[1, 2, 3]), 3, red_first=True)

    found = box(Nv12(values), geometry)

    box(Nv12(values).pixels(), other)
    assert geometry == other
    expected = np.full((*size, 3), [1, 2, 3], np.uint8)
    top, left = int(geometry.top), int(geometry.left)
    expected[top : top + inner[0], left : left + inner[1]] = Resize(options(size=inner))(
        Nv12(values), Geometry(400, 300)
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "steps, size",
    [
        ([], (300, 400)),
        ([{"resize": {"size": [150, 200]}}], (150, 200)),
        ([{"crop": {"size": 10}}], (10, 10)),
    ],
)
def test_a_model_takes_nv12(serve, pictures, steps, size):
    values = nv12_of(pictures.pixels(5, 300, 400))
    served = serve([{"pixels": {"colour": "NV12"}}, *steps, TENSOR])

    answer = served.ask(image=values[None])

    picture, geometry = Nv12(values), answer["geometry"][0]
    assert geometry[:2].tolist() == [400, 300]
    assert answer["pixels"].shape == (1, *size, 3)
    if not steps:
        np.testing.assert_array_equal(answer["pixels"][0], picture.pixels())


def test_nv12_is_encoded(serve, pictures):
    values = nv12_of(pictures.pixels(5, 60, 80))
    served = serve([{"encode": {"format": "png", "colour": "NV12"}}])

    answer = served.ask(pixels=values[None])

    found = np.asarray(Image.open(io.BytesIO(answer["picture"].reshape(-1)[0])))
    np.testing.assert_array_equal(found, Nv12(values).pixels())


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (0, 4), (3, 0)])
def test_values_of_no_picture_are_refused(shape):
    with pytest.raises(NoPicture, match=r"of shape \[.*\] is not NV12"):
        Nv12(np.zeros(shape, np.uint8))


def test_a_request_with_another_shape_is_told_it(serve):
    served = serve([{"pixels": {"colour": "NV12"}}, {"resize": {"size": 10}}, TENSOR])

    with pytest.raises(CoreError, match=r"a picture of shape \[4, 4\] is not NV12"):
        served.ask(image=np.zeros((1, 4, 4), np.uint8))
