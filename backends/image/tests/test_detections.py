"""Detections in compiled code are those of numpy and cv2.dnn.NMSBoxes, bit for bit."""

import numpy as np
import pytest
from backend_image.native.detector import Detector
from backend_image.opencv import cv2
from backend_image.shape import Geometry
from hypothesis import given, settings
from hypothesis import strategies as st

OPTIONS = {
    "score_threshold": 0.25,
    "iou_threshold": 0.45,
    "by_class": True,
    "centred": False,
    "size": None,
    "max_candidates": 3000,
    "max_detections": 300,
}


def expected_detections(boxes, scores, objects, geometry, given):
    """Return boxes, scores and classes as numpy and OpenCV compute them."""
    if objects is not None:
        scores = scores * objects[:, None]
    value = scores.max(axis=1)
    chosen = (value >= np.float32(given["score_threshold"])).nonzero()[0]
    chosen = chosen[np.argsort(-value[chosen], kind="stable")][: given["max_candidates"]]
    corners = boxes[chosen].astype(np.float64)
    if given["centred"]:
        centre, half = corners[:, :2], corners[:, 2:] / 2
        corners = np.concatenate([centre - half, centre + half], axis=1)
    if given["size"] is not None:
        corners *= np.array([*given["size"][::-1]] * 2, np.float64)
    sizes = corners[:, 2:] - corners[:, :2]
    real = np.isfinite(corners).all(axis=1) & (sizes > 0).all(axis=1)
    chosen, corners, sizes = chosen[real], corners[real], sizes[real]
    classes = scores[chosen].argmax(axis=1)
    kept = kept_by_opencv(corners, sizes, classes, given)
    corners = corners[kept]
    if geometry is not None:
        corners = geometry.original(corners.reshape(-1, 2)).clip(
            0, (geometry.width, geometry.height)
        )
    found = corners.reshape(-1, 4).astype(np.float32)
    return found, value[chosen[kept]].astype(np.float32), classes[kept].astype(np.int32)


def kept_by_opencv(corners, sizes, classes, given):
    if not len(corners):
        return np.empty(0, np.int64)
    places = corners[:, :2]
    if given["by_class"]:
        places = places + ((corners.max() - corners.min() + 1) * classes)[:, None]
    ranks = [float(rank) for rank in range(len(corners), 0, -1)]
    rectangles = np.concatenate([places, sizes], axis=1).tolist()
    kept = cv2.dnn.NMSBoxes(rectangles, ranks, 0.0, given["iou_threshold"])
    return np.asarray(kept, np.int64).reshape(-1)[: given["max_detections"]]


def check(boxes, scores, objects=None, geometry=None, **changed):
    given = {**OPTIONS, **changed}
    with np.errstate(all="ignore"):
        expected = expected_detections(boxes, scores, objects, geometry, given)

    found = Detector(**given).find(boxes, scores, objects, geometry)

    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)
    return found


def in_another_layout(array, layout):
    """Return the same numbers: contiguous, as columns, with gaps, backwards, or at odd addresses."""
    if layout == "columns":
        return np.asfortranarray(array)
    if layout == "gaps":
        wide = np.zeros((array.shape[0] * 2, array.shape[1] + 3), np.float32)
        wide[::2, 2:-1] = array
        return wide[::2, 2:-1]
    if layout == "backwards":
        return np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1]
    if layout == "unaligned":
        return np.frombuffer(b"\0" + array.tobytes(), np.float32, offset=1).reshape(array.shape)
    return array


LAYOUTS = ["rows", "columns", "gaps", "backwards", "unaligned"]
HOSTILE = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 1e-8, -1.0, 3e38, -3e38, 16777216.0, 0.1]

geometries = st.none() | st.builds(
    Geometry,
    *[st.floats(1, 5000, width=32)] * 2,
    *[st.floats(2**-10, 100, width=32)] * 2,
    *[st.floats(-500, 500, width=32)] * 2,
)
choices = st.fixed_dictionaries(
    {
        "score_threshold": st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]),
        "iou_threshold": st.sampled_from([0.0, 0.2, 1 / 3, 0.45, 0.5, 1.0]),
        "by_class": st.booleans(),
        "centred": st.booleans(),
        "size": st.sampled_from([None, (1, 1), (640, 480), (3, 7)]),
        "max_candidates": st.sampled_from([1, 5, 40, 3000]),
        "max_detections": st.sampled_from([1, 4, 300]),
    }
)


@settings(max_examples=400)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 1, 2, 7, 60, 200]),
    st.sampled_from([1, 2, 3, 9, 80]),
    st.sampled_from(["any", "grid", "hostile", "far"]),
    st.sampled_from(LAYOUTS),
    st.booleans(),
    geometries,
    choices,
)
def test_detections_are_those_of_opencv(
    seed, count, classes, kind, layout, weighted, geometry, given
):
    random = np.random.default_rng(seed)
    boxes, scores = new_output(random, count, classes, kind)
    objects = random.choice(scores.reshape(-1), count) if weighted and count else None

    check(
        in_another_layout(boxes, layout),
        in_another_layout(scores, layout),
        objects,
        geometry,
        **given,
    )


def new_output(random, count, classes, kind):
    """Return boxes of one kind, with scores of which many are equal."""
    corner = random.uniform(-20, 60, (count, 2))
    boxes = np.concatenate([corner, corner + random.uniform(-2, 40, (count, 2))], axis=1)
    scores = random.integers(0, 21, (count, classes)) / 20
    if kind == "grid":  # equal boxes, and overlaps that are exactly a threshold
        boxes = np.round(boxes / 10) * 10
    elif kind == "far":
        boxes *= 10.0 ** random.integers(-12, 36)
    elif kind == "hostile":
        for array in (boxes, scores):
            wrong = random.random(array.shape) < 0.1
            array[wrong] = random.choice(HOSTILE, wrong.sum())
    return boxes.astype(np.float32), scores.astype(np.float32)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_large_output_has_the_detections_of_opencv(layout):
    random = np.random.default_rng(5)
    boxes = random.uniform(0, 640, (8400, 4)).astype(np.float32)
    boxes[:, 2:] = random.uniform(5, 90, (8400, 2))
    scores = random.beta(0.3, 6, (8400, 80)).astype(np.float32)
    scores[17, 3] = np.nan

    found, _, _ = check(
        in_another_layout(boxes, layout), in_another_layout(scores, layout), centred=True
    )

    assert len(found) == 300


def test_an_overlap_of_exactly_the_threshold_is_no_duplicate():
    boxes = np.array([[0, 0, 2, 1], [0, 0, 1, 1]], np.float32)  # they share a half
    scores = np.array([[0.9], [0.8]], np.float32)

    assert len(check(boxes, scores, iou_threshold=0.5)[0]) == 2
    assert len(check(boxes, scores, iou_threshold=0.49)[0]) == 1


def test_equal_scores_keep_their_order_and_the_first_class_counts():
    boxes = np.array([[x, 0, x + 5, 5] for x in range(0, 400, 10)], np.float32)
    scores = np.full((40, 20), 0.5, np.float32)

    found, _, classes = check(boxes, scores, max_candidates=30)

    assert found[:, 0].tolist() == [*range(0, 300, 10)]
    assert set(classes.tolist()) == {0}


def test_boxes_of_different_classes_are_no_duplicates():
    boxes = np.array([[0, 0, 9, 9]] * 2, np.float32)
    scores = np.array([[0.9, 0], [0, 0.8]], np.float32)

    assert check(boxes, scores)[2].tolist() == [0, 1]
    assert check(boxes, scores, by_class=False)[2].tolist() == [0]


def test_wrong_shapes_are_refused():
    detector = Detector(**OPTIONS)
    boxes = np.zeros((3, 4), np.float32)

    with pytest.raises(ValueError, match=r"boxes \[n, 4\] need scores \[n, classes\]"):
        detector.find(boxes, np.zeros((2, 1), np.float32), None, None)
    with pytest.raises(ValueError, match="at least one class"):
        detector.find(boxes, np.zeros((3, 0), np.float32), None, None)
    with pytest.raises(ValueError, match=r"boxes \[n, 4\] need objects \[n\]"):
        detector.find(boxes, np.zeros((3, 1), np.float32), np.zeros(2, np.float32), None)
