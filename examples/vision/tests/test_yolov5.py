"""A detector of the kind of YOLOv5: it finds what was drawn, and answers like a loop by hand."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import core

pytest.importorskip("backend_image", reason="backend-image is not installed")
pytest.importorskip("backend_onnx", reason="backend-onnx is not installed")
cv2 = pytest.importorskip("cv2")
onnxruntime = pytest.importorskip("onnxruntime")

FOLDER = Path(__file__).parents[1]
SHAPES = runpy.run_path(str(FOLDER / "shapes.py"))
KINDS, SIDE = SHAPES["KINDS"], 128
SCORE, OVERLAP = 0.4, 0.45  # of find_shapes


@pytest.fixture(scope="module")
def server():
    with core.Server(model_repository=str(FOLDER / "yolov5")) as running:
        yield running


@pytest.fixture(scope="module")
def network():
    file = FOLDER / "yolov5" / "shapes_yolov5" / "1" / "model.onnx"
    return onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])


def scene(seed, height, width):
    """Return a picture with four shapes that do not touch, their boxes and kinds."""
    random = np.random.default_rng(seed)
    picture = np.full((height, width, 3), random.integers(20, 90), np.uint8)
    boxes, kinds = [], random.integers(0, len(KINDS), 4)
    for each, kind in enumerate(kinds):
        radius = random.uniform(0.09, 0.2) * min(height, width)
        cell = np.array([width, height]) / 2
        centre = (np.array([each % 2, each // 2]) + random.uniform(0.45, 0.55, 2)) * cell
        SHAPES["draw"](picture, kind, centre, radius, random.integers(150, 256, 3))
        boxes.append([*(centre - radius), *(centre + radius)])
    return picture, np.array(boxes, np.float32), kinds


def by_hand(network, picture):
    """Return boxes, scores and classes of a picture, blue first, with OpenCV, numpy and loops."""
    height, width = picture.shape[:2]
    scale = min(SIDE / height, SIDE / width)
    new_height, new_width = round(height * scale), round(width * scale)
    top, left = (SIDE - new_height) // 2, (SIDE - new_width) // 2
    canvas = cv2.copyMakeBorder(
        cv2.resize(picture, (new_width, new_height), interpolation=cv2.INTER_LINEAR),
        top,
        SIDE - new_height - top,
        left,
        SIDE - new_width - left,
        cv2.BORDER_CONSTANT,
        value=(114, 114, 114),
    )
    pixels = canvas[..., ::-1].transpose(2, 0, 1)[None].astype(np.float32) / 255
    (rows,) = network.run(None, {"pixels": pixels})
    boxes, scores, classes = [], [], []
    for row in rows[0]:
        best = int(row[5:].argmax())
        score = row[4] * row[5 + best]
        if score >= SCORE:
            x, y, w, h = row[:4]
            boxes.append((x - w / 2, y - h / 2, w, h))
            scores.append(float(score))
            classes.append(best)
    kept = []
    for kind in set(classes):
        of_kind = [i for i, each in enumerate(classes) if each == kind]
        chosen = cv2.dnn.NMSBoxes(
            [boxes[i] for i in of_kind], [scores[i] for i in of_kind], SCORE, OVERLAP
        )
        kept += [of_kind[i] for i in np.asarray(chosen).reshape(-1)]
    kept.sort(key=lambda i: -scores[i])
    back = []
    for x, y, w, h in (boxes[i] for i in kept):
        corners = np.array([x - left, y - top, x + w - left, y + h - top])
        corners /= np.array([new_width / width, new_height / height] * 2)
        back.append(corners.clip(0, [width, height] * 2))
    return np.array(back), np.array([scores[i] for i in kept]), [classes[i] for i in kept]


@pytest.mark.parametrize(("height", "width"), [(128, 128), (240, 320), (400, 180), (90, 120)])
@pytest.mark.parametrize("seed", range(4))
def test_it_answers_like_a_loop_by_hand(server, network, seed, height, width):
    picture = scene(seed, height, width)[0]

    answer = server.infer(
        "detect_shapes", {"image": [[cv2.imencode(".png", picture)[1].tobytes()]]}
    )

    boxes, scores, classes = by_hand(network, picture)
    assert len(scores)
    np.testing.assert_allclose(answer["scores"][0], scores, rtol=1e-5)
    np.testing.assert_array_equal(answer["classes"][0], classes)
    np.testing.assert_allclose(answer["boxes"][0], boxes, rtol=1e-4, atol=1e-2)


def test_it_finds_what_was_drawn(server):
    found = drawn = extra = 0
    for seed in range(10):
        picture, boxes, kinds = scene(100 + seed, 240, 320)
        file = cv2.imencode(".jpg", picture)[1].tobytes()

        answer = server.infer("detect_shapes", {"image": [[file]]})

        extra += max(0, len(answer["scores"][0]) - len(boxes))
        for box, kind in zip(boxes, kinds, strict=True):
            drawn += 1
            same = answer["boxes"][0][answer["classes"][0] == kind]
            found += bool(len(same)) and SHAPES["overlaps"](box, same).max() > 0.6
            assert KINDS[kind].encode() in answer["labels"][0] or not len(same)
    assert found >= 0.85 * drawn
    assert extra <= 0.2 * drawn


def test_the_picture_comes_back_with_its_boxes(server):
    picture = scene(3, 240, 320)[0]
    file = cv2.imencode(".png", picture)[1].tobytes()

    answer = server.infer("detect_shapes", {"image": [[file]]}, outputs=["picture"])

    drawn = cv2.imdecode(np.frombuffer(answer["picture"][0, 0], np.uint8), cv2.IMREAD_COLOR)
    assert drawn.shape == picture.shape
    assert (np.abs(drawn.astype(int) - picture) > 60).any(axis=2).sum() > 100


def test_a_picture_without_shapes_has_no_boxes(server):
    file = cv2.imencode(".png", np.full((100, 100, 3), 50, np.uint8))[1].tobytes()

    answer = server.infer("detect_shapes", {"image": [[file]]})

    assert answer["boxes"].shape == (1, 0, 4)
