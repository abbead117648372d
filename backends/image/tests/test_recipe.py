"""image.json: what an error says."""

import json

import pytest

from core.errors import CoreError

pytest_plugins = ["core_testing.plugin"]

TENSOR = {"tensor": {}}


@pytest.mark.parametrize(
    "steps, message",
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("", "is not JSON"),
        (" " * 1_100_000, "more than 1000000 bytes"),
        ({}, "must be a list of steps"),
        ([], "must be a list of steps"),
        ([1], "step 0 is 1, it must be an object with one name"),
        ([{"decode": {}, "crop": {}}], "it must be an object with one name"),
        ([{"decode": 5}], "step 0 (decode) has 5 in place of its options"),
        ([{"resize": {}}], "step 0 is 'resize', expected decode or pixels or top_k"),
        ([{"decode": {}}], "step 0 is 'decode', expected tensor as the last step"),
        ([{"decode": {}}, {"crop": {"size": 5}}], "step 1 is 'crop', expected tensor"),
        (
            [{"decode": {}}, {"turn": {}}, TENSOR],
            "step 1 is 'turn', expected resize or letterbox or crop",
        ),
        ([{"decode": {"color": "grey"}}, TENSOR], "has no option 'color', only colour"),
        ([{"decode": {"color": "grey"}}, TENSOR], "did you mean 'colour'?"),
        ([{"decode": {"colour": "red"}}, TENSOR], "'colour' is \"red\", it must be colour or grey"),
        ([{"decode": {"max_megapixels": True}}, TENSOR], "a number from 0.0001 to 1000"),
        ([{"decode": {}}, {"resize": {}}, TENSOR], "needs the option 'size': the only one of"),
        (
            [{"decode": {}}, {"resize": {"size": 1, "shorter": 2}}, TENSOR],
            "the only one of size, shorter",
        ),
        ([{"decode": {}}, {"resize": {"size": 50_000}}, TENSOR], "from 1 to 16384"),
        ([{"decode": {}}, {"resize": {"size": [1, 2, 3]}}, TENSOR], "a side, or [height, width]"),
        (
            [{"decode": {}}, {"resize": {"size": 5, "method": "best"}}, TENSOR],
            "nearest or bilinear",
        ),
        ([{"decode": {}}, {"letterbox": {"size": 5, "fill": [1]}}, TENSOR], "a list of 3 numbers"),
        ([{"decode": {}}, {"tensor": {"mean": ["a"] * 3}}], "a number, or a list of 3 numbers"),
        ([{"decode": {}}, {"tensor": {"std": [1, 0, 1]}}], "numbers other than 0"),
        ([{"top_k": {"k": 0}}], "a whole number from 1 to 100000"),
        ([{"top_k": {"labels": "none.txt"}}], "the name of a file in"),
        ([{"top_k": {"labels": "../../secret.txt"}}], "the name of a file in the folder"),
        ([{"top_k": {}}, {"draw": {}}], "must be the only one, not one of 2"),
        ([{"detections": {"iou_threshold": 2}}], "a number from 0 to 1"),
        ([{"draw": {}}], "step 0 is 'draw', expected encode after draw"),
        ([{"draw": {"colour": "grey"}}, {"encode": {}}], "boxes are drawn in colours"),
        ([{"draw_keypoints": {}}], "expected encode after draw_keypoints, as the last step"),
        (
            [{"draw_keypoints": {"lines": [[0, 1], [2]]}}, {"encode": {}}],
            "'lines' is [[0, 1], [2]], it must be a list of pairs of numbers from 0",
        ),
        ([{"keypoints": {"input_size": 5, "layout": "HWC"}}], "it must be NCHW or NHWC"),
        ([{"masks": {}}], "needs the option 'input_size'"),
    ],
)
def test_an_error_names_the_file_and_the_step(serve, steps, message):
    with pytest.raises(CoreError) as raised:
        serve(steps if isinstance(steps, str) else json.dumps(steps))

    assert message in raised.value.message
    assert "image.json" in raised.value.message


def test_a_model_without_the_file_names_it(model_repository, serve_repository):
    model_repository.add("model", 'backend: "image"')

    with pytest.raises(CoreError, match=r"image\.json' cannot be read: No such file"):
        serve_repository()
