"""Pictures become the tensors that numpy computes, in one batch."""

import io

import cv2
import numpy as np
import pytest
from backend_image.native.pixels import look_up
from backend_image.tensor import ToTensor
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from core.errors import CoreError

pytest_plugins = ["core_testing.plugin"]

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
IMAGENET = {"scale": 255, "mean": MEAN, "std": STD}
DATATYPES = {"FP32": np.float32, "FP16": np.float16, "UINT8": np.uint8, "INT8": np.int8}


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(DATATYPES)),
    st.booleans(),
    st.booleans(),
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from([1, 3]),
    st.booleans(),
)
def test_a_tensor_is_that_of_numpy(
    pictures, options, datatype, planar, red_first, height, width, channels, view
):
    picture = pictures.pixels(5, height + 9, width + 9)[..., :channels]
    picture = np.ascontiguousarray(picture)[..., 0] if channels == 1 else picture
    picture = picture[4 : 4 + height, 4 : 4 + width]
    picture = picture if view else np.ascontiguousarray(picture)
    whole = datatype in ("UINT8", "INT8")
    given = {
        "scale": 1 if whole else 255,
        "mean": [100, 90, 80][:channels] if whole else 0.4,
        "std": 0.7,
    }
    step = ToTensor(
        options(
            layout="NCHW" if planar else "NHWC",
            colour="RGB" if red_first else "BGR",
            datatype=datatype,
            **given,
        ),
        channels,
    )
    out = np.empty(step.shape(height, width), DATATYPES[datatype])

    step(picture, out)

    values = picture.reshape(height, width, channels)
    values = values[..., ::-1] if red_first else values
    mean = np.array(given["mean"], np.float32)
    expected = (values.astype(np.float32) / np.float32(given["scale"]) - mean) / np.float32(0.7)
    if whole:
        limits = np.iinfo(DATATYPES[datatype])
        expected = expected.round().clip(limits.min, limits.max)
    expected = expected.astype(DATATYPES[datatype])
    np.testing.assert_array_equal(out, expected.transpose(2, 0, 1) if planar else expected)


@pytest.mark.parametrize("red_first", [True, False])
@pytest.mark.parametrize("layout, datatype", [("NCHW", "FP32"), ("NHWC", "FP16")])
def test_the_tensor_of_a_large_picture_is_that_of_numpy(options, layout, datatype, red_first):
    """From 65536 pixels on; a picture that is blue first is read from its last channel to its first."""
    picture = np.arange(300 * 301 * 3, dtype=np.uint8).reshape(300, 301, 3)[::-1, ::-1]
    step = ToTensor(options(scale=255, layout=layout, datatype=datatype), 3, red_first)
    out = np.empty(step.shape(300, 301), DATATYPES[datatype])

    step(picture, out)

    values = picture if red_first else picture[..., ::-1]
    expected = (values / np.float32(255)).astype(DATATYPES[datatype])
    np.testing.assert_array_equal(
        out, expected.transpose(2, 0, 1) if layout == "NCHW" else expected
    )


@pytest.mark.parametrize(
    "tables, out, message",
    [
        (np.zeros((2, 256), np.uint8), np.zeros((3, 4, 5), np.uint8), "3 channels need 3 tables"),
        (np.zeros((3, 255), np.uint8), np.zeros((3, 4, 5), np.uint8), "of 256 values"),
        (np.zeros((3, 256), np.uint8), np.zeros((4, 5, 3), np.uint8), "channels, height, width"),
    ],
)
def test_pixels_are_looked_up_in_fitting_tables_only(tables, out, message):
    with pytest.raises(ValueError, match=message):
        look_up(np.zeros((4, 5, 3), np.uint8), tables, out)


@pytest.mark.parametrize(
    "tables, out, error",
    [(">u2", ">u2", ValueError), ("u2", "u1", ValueError), ("f4", "f4", TypeError)],
)
def test_tables_and_result_have_whole_numbers_of_one_datatype(tables, out, error):
    with pytest.raises(error):
        look_up(np.zeros((4, 5, 3), np.uint8), np.zeros((3, 256), tables), np.zeros((3, 4, 5), out))


def test_pictures_of_different_sizes_share_a_batch(serve, pictures, as_files):
    served = serve([{"decode": {}}, {"resize": {"size": [32, 48]}}, {"tensor": IMAGENET}])
    files = [pictures.file(pictures.pixels(i, 30 + i, 60 - i)) for i in range(5)]

    found = served.ask(image=as_files(*files))

    assert found["pixels"].shape == (5, 3, 32, 48)
    for file, tensor, geometry in zip(files, found["pixels"], found["geometry"], strict=True):
        picture = cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR)
        small = cv2.resize(picture, (48, 32))[..., ::-1].astype(np.float32) / np.float32(255)
        expected = (small - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
        np.testing.assert_allclose(tensor, expected.transpose(2, 0, 1), atol=1e-5)
        assert geometry[:2].tolist() == [picture.shape[1], picture.shape[0]]


def test_the_steps_of_torchvision_give_its_tensor(serve, pictures, as_files):
    """Resize(256), CenterCrop(224), ToTensor, Normalize, on PIL images."""
    served = serve(
        [
            {"decode": {}},
            {"resize": {"shorter": 256, "like": "pil"}},
            {"crop": {"size": 224}},
            {"tensor": IMAGENET},
        ]
    )
    file = pictures.file(pictures.pixels(6, 400, 300))

    found = served.ask(image=as_files(file))["pixels"][0]

    image = Image.open(io.BytesIO(file)).resize((256, 341), Image.Resampling.BILINEAR)
    left, top = round((256 - 224) / 2), round((341 - 224) / 2)
    cut = np.asarray(image.crop((left, top, left + 224, top + 224)), np.float32) / 255
    expected = (cut - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
    np.testing.assert_allclose(found, expected.transpose(2, 0, 1), atol=1e-5)


@pytest.mark.parametrize("given", ["RGB", "BGR"])
@pytest.mark.parametrize("wanted", ["RGB", "BGR"])
def test_pixels_keep_the_order_of_their_colours_until_the_tensor(serve, pictures, given, wanted):
    fill = [250, 120, 10]  # red first
    served = serve(
        [
            {"pixels": {"colour": given}},
            {"letterbox": {"size": [40, 40], "fill": fill}},
            {"tensor": {"layout": "NHWC", "datatype": "UINT8", "colour": wanted}},
        ]
    )
    red_first = pictures.pixels(3, 30, 60)
    pixels = red_first if given == "RGB" else np.ascontiguousarray(red_first[..., ::-1])

    found = served.ask(image=pixels[None])["pixels"][0]

    expected = np.full((40, 40, 3), fill, np.uint8)
    expected[10:30] = cv2.resize(red_first, (40, 20))
    np.testing.assert_array_equal(found, expected if wanted == "RGB" else expected[..., ::-1])


def test_one_bad_file_does_not_fail_the_other_requests(serve, pictures, as_files):
    served = serve([{"decode": {}}, {"resize": {"size": 8}}, {"tensor": {"layout": "NHWC"}}])
    good = as_files(pictures.file(pictures.pixels(1, 9, 9)))
    alone = served.ask(image=good)["pixels"]

    first, failed, last = served.together(
        [{"image": good}, {"image": as_files(b"no picture")}, {"image": good}]
    )

    assert isinstance(failed, CoreError)
    assert failed.message == (
        "model 'model': it is no JPEG, PNG, WebP or BMP file; its 10 bytes begin with "
        "6e 6f 20 70 69 63 74 75"
    )
    np.testing.assert_array_equal(first["pixels"], alone)
    np.testing.assert_array_equal(last["pixels"], alone)


def test_without_a_size_each_request_has_its_own(serve, pictures, as_files):
    served = serve([{"decode": {}}, {"tensor": {"datatype": "UINT8", "layout": "NHWC"}}])
    small, large = (pictures.file(pictures.pixels(1, *size), "PNG") for size in ((5, 9), (30, 20)))

    found = served.together([{"image": as_files(each)} for each in (small, large, small)])
    mixed = served.answer(image=as_files(small, large))

    assert [each["pixels"].shape for each in found] == [(1, 5, 9, 3), (1, 30, 20, 3), (1, 5, 9, 3)]
    np.testing.assert_array_equal(found[0]["pixels"][0], pictures.pixels(1, 5, 9))
    assert "have shapes [5, 9, 3] and [30, 20, 3], they must be equal" in mixed.message


def test_pixels_may_come_without_a_file(serve, pictures):
    steps = [{"pixels": {}}, {"resize": {"size": 16}}, {"tensor": {"datatype": "UINT8"}}]
    served = serve(steps)
    pixels = pictures.pixels(3, 40, 30)

    found = served.ask(image=pixels[None])["pixels"][0]

    np.testing.assert_array_equal(found, cv2.resize(pixels, (16, 16)).transpose(2, 0, 1))
    assert "has no pixel" in served.answer(image=pixels[None, :0]).message


def test_grey_pictures_have_one_channel(serve, pictures, as_files):
    served = serve([{"decode": {"colour": "grey"}}, {"letterbox": {"size": 16}}, {"tensor": {}}])

    found = served.ask(image=as_files(pictures.file(pictures.pixels(3, 40, 30))))

    assert found["pixels"].shape == (1, 1, 16, 16)
    assert served.config.output[0].dims[0] == 1


def test_a_model_without_batches_has_no_batch_dimension(serve, pictures, as_files):
    served = serve(
        [{"decode": {}}, {"resize": {"size": 8}}, {"tensor": {}}],
        'backend: "image" input { name: "image" data_type: TYPE_STRING dims: [ 1 ] }',
    )

    found = served.ask(image=as_files(pictures.file(pictures.pixels(3, 40, 30)))[0])

    assert found["pixels"].shape == (3, 8, 8)
    assert found["geometry"].shape == (6,)


def test_an_output_that_the_configuration_leaves_out_is_not_answered(serve, pictures, as_files):
    served = serve(
        [{"decode": {}}, {"resize": {"size": 8}}, {"tensor": {}}],
        'backend: "image" max_batch_size: 4 output { name: "pixels" data_type: TYPE_FP32 dims: [ 3, 8, 8 ] }',
    )
    good = as_files(pictures.file(pictures.pixels(3, 40, 30)))

    found = served.together([{"image": good}, {"image": as_files(b"")}])

    assert list(found[0]) == ["pixels"]
    assert isinstance(found[1], CoreError)


@pytest.mark.parametrize(
    "text, message",
    [
        ('input { name: "file" data_type: TYPE_STRING dims: [ 1 ] }', "lacks the input image"),
        (
            'output { name: "x" data_type: TYPE_FP32 dims: [ 3 ] }',
            "has the outputs pixels, geometry",
        ),
        ('output { name: "pixels" data_type: TYPE_FP16 dims: [ 3, 8, 8 ] }', "says TYPE_FP32"),
        ('output { name: "pixels" data_type: TYPE_FP32 dims: [ 3, 9, 8 ] }', "says [3, 8, 8]"),
    ],
)
def test_a_configuration_that_does_not_fit_fails_the_load(serve, text, message):
    with pytest.raises(CoreError) as raised:
        serve(
            [{"decode": {}}, {"resize": {"size": 8}}, {"tensor": {}}], f"max_batch_size: 2 {text}"
        )

    assert message in raised.value.message
