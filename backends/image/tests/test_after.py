"""What becomes of the outputs of a model: classes, boxes, masks, keypoints, drawings."""

import io

import numpy as np
import pytest
from backend_image.detections import Detections
from backend_image.draw import colour_of
from backend_image.top_k import softmax
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from core.errors import CoreError

pytest_plugins = ["core_testing.plugin"]

# classes ----------------------------------------------------------------------


def test_the_best_classes_come_with_their_labels(serve):
    served = serve(
        [{"top_k": {"k": 2, "softmax": True, "labels": "names.txt"}}],
        files={"names.txt": "cat\ndog\nbird\n"},
    )
    scores = np.array([[0, 2, 1], [5, 5, 1]], np.float32)

    found = served.ask(scores=scores)

    assert found["classes"].tolist() == [[1, 2], [0, 1]]
    assert found["labels"].tolist() == [[b"dog", b"bird"], [b"cat", b"dog"]]
    expected = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(found["scores"], -np.sort(-expected)[:, :2], rtol=1e-6)


def test_large_scores_do_not_overflow():
    assert softmax(np.array([[1000, 0]], np.float32)).tolist() == [[1, 0]]


def test_fewer_classes_than_k_are_refused(serve):
    served = serve([{"top_k": {"k": 5}}])

    assert (
        "has 3 classes, fewer than the 5 of 'k'"
        in served.answer(scores=np.zeros((1, 3), np.float32)).message
    )


# boxes ------------------------------------------------------------------------


def overlap(one, other):
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(width, 0) * max(height, 0)
    area, other_area = ((each[2] - each[0]) * (each[3] - each[1]) for each in (one, other))
    return shared / (area + other_area - shared)


def plain_nms(boxes, scores, least, most_overlap, by_class):
    """Return (index, class, score) of the boxes to keep: the textbook's loop."""
    best = scores.argmax(1)
    order = sorted(range(len(boxes)), key=lambda i: -scores[i, best[i]])
    kept = []
    for i in order:
        if scores[i, best[i]] < least:
            continue
        rivals = [k for k in kept if not by_class or best[k] == best[i]]
        if all(
            overlap(boxes[i].astype(float), boxes[k].astype(float)) <= most_overlap for k in rivals
        ):
            kept.append(i)
    return [(i, int(best[i]), float(scores[i, best[i]])) for i in kept]


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(0, 60),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 0.7]),
    st.sampled_from([0.1, 0.45, 0.8]),
)
def test_duplicates_go_as_in_the_plain_loop(
    options, tmp_path_factory, seed, count, classes, by_class, least, most_overlap
):
    random = np.random.default_rng(seed)
    corner = random.uniform(0, 60, (count, 2))
    boxes = np.concatenate([corner, corner + random.uniform(5, 40, (count, 2))], 1).astype(
        np.float32
    )
    scores = (random.integers(1, 20, (count, classes)) / 20).astype(np.float32)  # with ties
    stage = Detections(
        options(score_threshold=least, iou_threshold=most_overlap, class_aware=by_class),
        tmp_path_factory.mktemp("labels"),
    )

    found = stage._detections(boxes, scores, None)

    expected = plain_nms(boxes, scores, least, most_overlap, by_class)
    assert found["boxes"].tolist() == [boxes[i].tolist() for i, _, _ in expected]
    assert found["classes"].tolist() == [number for _, number, _ in expected]
    assert found["scores"].tolist() == pytest.approx([score for _, _, score in expected])


YOLO = np.array(
    [  # centre, size, object, two classes
        [50, 50, 20, 40, 0.9, 0.1, 0.8],
        [51, 50, 20, 40, 0.8, 0.1, 0.8],
        [10, 10, 10, 10, 0.9, 0.9, 0.0],
        [90, 90, 10, 10, 0.1, 0.9, 0.0],
    ],
    np.float32,
)


@pytest.mark.parametrize("version", ["yolov5", "yolov8"])
def test_the_output_of_yolo_becomes_boxes_in_the_picture(serve, version):
    served = serve([{"detections": {"format": version, "score_threshold": 0.5, "labels": "names.txt"}}],
                   files={"names.txt": "car\nbus"})  # fmt: skip
    rows = (
        YOLO
        if version == "yolov5"
        else np.concatenate([YOLO[:, :4], YOLO[:, 4:5] * YOLO[:, 5:]], 1).T
    )
    # The picture has 200 x 100 pixels; half as large, it is in the middle of 100 x 100.
    geometry = np.array([200, 100, 0.5, 0.5, 0, 25], np.float32)

    found = served.ask(predictions=rows[None], geometry=geometry[None])

    assert found["count"].tolist() == [[2]]
    assert found["labels"].tolist() == [[b"car", b"bus"]]
    np.testing.assert_allclose(found["scores"], [[0.81, 0.72]], rtol=1e-6)
    np.testing.assert_allclose(found["boxes"], [[[10, 0, 30, 0], [80, 10, 120, 90]]])


def test_boxes_may_be_parts_of_the_input(serve):
    served = serve([{"detections": {"box": "centre", "relative_to": [50, 100]}}])

    found = served.ask(
        boxes=np.array([[[0.5, 0.5, 0.2, 0.2]]], np.float32), scores=np.array([[[0.9]]], np.float32)
    )

    np.testing.assert_allclose(found["boxes"], [[[40, 20, 60, 30]]], rtol=1e-5)


def test_rows_with_fewer_boxes_are_filled(serve):
    served = serve([{"detections": {}}])
    boxes = np.array([[[0, 0, 5, 5], [20, 20, 30, 30]]] * 2, np.float32)
    scores = np.array([[[0.9], [0.8]], [[0.1], [0.7]]], np.float32)

    found = served.ask(boxes=boxes, scores=scores)

    assert found["count"].tolist() == [[2], [1]]
    assert found["classes"].tolist() == [[0, 0], [0, -1]]
    assert found["boxes"][1].tolist() == [[20, 20, 30, 30], [0, 0, 0, 0]]


def test_boxes_without_area_or_number_are_dropped(serve):
    served = serve([{"detections": {}}])
    boxes = np.array([[[5, 5, 5, 9], [9, 0, 3, 3], [0, 0, np.inf, 3], [0, 0, 3, 3]]], np.float32)
    scores = np.array([[[0.9], [0.9], [0.9], [np.nan]]], np.float32)

    assert served.ask(boxes=boxes, scores=scores)["count"].tolist() == [[0]]


@pytest.mark.parametrize("geometry", [[9, 9, 0, 1, 0, 0], [9, 9, 1, np.nan, 0, 0], [0] * 6])
def test_a_geometry_of_no_picture_is_refused(serve, geometry):
    served = serve([{"detections": {}}])

    found = served.answer(
        boxes=np.array([[[0, 0, 3, 3]]], np.float32),
        scores=np.array([[[0.9]]], np.float32),
        geometry=np.array([geometry], np.float32),
    )

    assert isinstance(found, CoreError)
    assert found.message.startswith("model 'model': 'geometry' is [")
    assert found.message.endswith("], which no picture has")


def test_a_wrong_number_of_scores_is_refused(serve):
    served = serve([{"detections": {}}])

    found = served.answer(
        boxes=np.zeros((1, 3, 4), np.float32), scores=np.zeros((1, 2, 1), np.float32)
    )

    assert "'boxes' has 3 boxes and 'scores' has scores of 2" in found.message


# maps -------------------------------------------------------------------------


def test_keypoints_are_the_highest_places_in_the_picture(serve):
    served = serve([{"keypoints": {"input_size": [64, 48]}}])
    maps = np.zeros((1, 2, 16, 12), np.float32)
    maps[0, 0, 5, 7] = 0.9
    maps[0, 0, 5, 8] = 0.5  # draws the point by a quarter
    maps[0, 1, 0, 0] = 0.3  # at the border, it stays
    geometry = np.array([[96, 128, 0.5, 0.5, 0, 0]], np.float32)

    found = served.ask(heatmaps=maps, geometry=geometry)["keypoints"]

    np.testing.assert_allclose(found[0], [[7.25 * 8, 5 * 8, 0.9], [0, 0, 0.3]], rtol=1e-6)


def test_masks_have_the_size_of_the_picture(serve):
    served = serve([{"masks": {"input_size": 100}}])
    mask = np.zeros((1, 1, 50, 50), np.float32)
    mask[0, 0, 20:30, 10:40] = 1  # in the input: rows 40 to 60, columns 20 to 80
    geometry = np.array([[200, 100, 0.5, 0.5, 0, 25]], np.float32)

    found = served.ask(masks=mask, geometry=geometry)["masks"]

    assert found.shape == (1, 1, 100, 200)
    y, x = np.nonzero(found[0, 0])
    assert (x.min(), x.max() + 1) == (40, 160)
    assert (y.min(), y.max() + 1) == (30, 70)
    assert set(found.ravel().tolist()) == {0, 1}


@pytest.mark.parametrize(
    "geometry, message",
    [
        (
            [50_000, 50_000, 1, 1, 0, 0],
            "2500000000 pixels, more than the 50000000 of max_megapixels",
        ),
        ([1, 70_000, 1, 1, 0, 0], "masks are made for sides of up to 65536"),
        ([0, 10, 1, 1, 0, 0], "which no picture has"),
        ([10, 10, 0, 1, 0, 0], "which no picture has"),
        ([10, 10, np.nan, 1, 0, 0], "which no picture has"),
    ],
)
def test_masks_of_no_picture_are_refused(serve, geometry, message):
    served = serve([{"masks": {"input_size": 100}}])

    found = served.answer(
        masks=np.zeros((1, 1, 5, 5), np.float32), geometry=np.array([geometry], np.float32)
    )

    assert isinstance(found, CoreError)
    assert message in found.message


# pictures ---------------------------------------------------------------------


def shown(answer):
    return np.asarray(Image.open(io.BytesIO(answer["picture"][0, 0])).convert("RGB"))


@pytest.mark.parametrize("format", ["jpeg", "png"])
def test_boxes_are_drawn(serve, as_files, pictures, format):
    served = serve(
        [{"draw": {"thickness": 1, "text": False}}, {"encode": {"format": format, "quality": 98}}]
    )
    black = pictures.file(np.zeros((40, 60, 3), np.uint8), "PNG")

    found = shown(
        served.ask(
            image=as_files(black),
            boxes=np.array([[[10, 5, 50, 30], [0, 0, 9, 9]]], np.float32),
            classes=np.array([[3, -1]], np.int32),
        )
    )

    expected = np.array(colour_of(3)[::-1])
    assert np.abs(found[5, 30].astype(int) - expected).max() < (
        90 if format == "jpeg" else 1
    )  # JPEG smears colours
    assert found[20, 30].max() < 30
    assert found[:4, :8].max() < 30  # a class of -1 only fills the tensor
    assert found.shape == (40, 60, 3)


def test_boxes_outside_of_the_picture_and_all_texts_are_drawn(serve, as_files, pictures):
    served = serve([{"draw": {}}, {"encode": {}}])
    wide = np.array([[[-1e9, -5, 1e9, 1e30], [np.nan, 0, 1, 1]]], np.float32)

    found = served.ask(
        image=as_files(pictures.file(pictures.pixels(1, 30, 30))),
        boxes=wide,
        scores=np.array([[0.5, 0.5]], np.float32),
        labels=np.array([["Käfer".encode(), b"x"]], object),
        ids=np.array([[7, -1]], np.int64),
    )

    assert shown(found).shape == (30, 30, 3)


def test_a_wrong_number_of_labels_is_refused(serve, as_files, pictures):
    served = serve([{"draw": {}}, {"encode": {}}])

    found = served.answer(
        image=as_files(pictures.file(pictures.pixels(1, 30, 30))),
        boxes=np.zeros((1, 2, 4), np.float32),
        scores=np.zeros((1, 1), np.float32),
    )

    assert "'scores' has shape [1, 1] and 'boxes' has [1, 2, 4]" in found.message


def test_pixels_become_a_file(serve, pictures):
    served = serve([{"encode": {"format": "png"}}])
    pixels = pictures.pixels(1, 20, 30)

    np.testing.assert_array_equal(shown(served.ask(pixels=pixels[None])), pixels)
