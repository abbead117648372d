"""The ensemble of a pose network: keypoints and drawing are those of a loop written by hand."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

import core

pytest.importorskip("backend_image", reason="backend-image is not installed")
cv2 = pytest.importorskip("cv2")

FOLDER = Path(__file__).parents[1]
FILE = FOLDER / "pose" / "landmarks" / "1" / "model.tflite"
SIDE, GRID, POINTS = 256, 64, 33
MAPS = POINTS + 6  # the network has helpers


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("backend_litert", reason="backend-litert is not installed")
    if not FILE.exists():
        pytest.skip("the network is in a package: npm pack @mediapipe/pose, then make_pose.py")
    with core.Server(model_repository=str(FOLDER / "pose")) as running:
        yield running


@pytest.fixture(scope="module")
def around(tmp_path_factory):
    """A server of the models before and after the network, which is not needed."""
    folder = tmp_path_factory.mktemp("pose")
    for name in ("prepare_person", "find_points", "draw_points"):
        shutil.copytree(FOLDER / "pose" / name, folder / name)
    with core.Server(model_repository=str(folder)) as running:
        yield running


def by_hand(picture):
    """Return keypoints [33, 3] of a picture, blue first, with OpenCV, LiteRT, numpy and a loop."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    height, width = picture.shape[:2]
    scale = min(SIDE / height, SIDE / width)
    new_height, new_width = round(height * scale), round(width * scale)
    top, left = (SIDE - new_height) // 2, (SIDE - new_width) // 2
    canvas = np.zeros((SIDE, SIDE, 3), np.uint8)
    canvas[top : top + new_height, left : left + new_width] = cv2.resize(
        picture, (new_width, new_height), interpolation=cv2.INTER_LINEAR
    )
    network = interpreter.Interpreter(str(FILE), num_threads=1)
    network.allocate_tensors()
    network.set_tensor(
        network.get_input_details()[0]["index"],
        canvas[None, ..., ::-1].astype(np.float32) / np.float32(255),
    )
    network.invoke()
    (output,) = (each for each in network.get_output_details() if each["name"] == "Identity_3")
    scales = new_width / width, new_height / height
    return points_by_hand(network.get_tensor(output["index"])[0], scales, (left, top))


def points_by_hand(heatmaps, scales, corner):
    """Return keypoints [33, 3] of heatmaps [64, 64, 39].

    scales, corner   of the picture in the input of the network: x, y
    """
    points = []
    for number in range(POINTS):
        heatmap = heatmaps[..., number]
        y, x = np.unravel_index(heatmap.argmax(), heatmap.shape)
        moved_x, moved_y = float(x), float(y)
        if 0 < x < GRID - 1 and 0 < y < GRID - 1:
            moved_x += 0.25 * np.sign(heatmap[y, x + 1] - heatmap[y, x - 1])
            moved_y += 0.25 * np.sign(heatmap[y + 1, x] - heatmap[y - 1, x])
        points.append(
            (
                (moved_x * SIDE / GRID - corner[0]) / scales[0],
                (moved_y * SIDE / GRID - corner[1]) / scales[1],
                1 / (1 + np.exp(-float(heatmap[y, x]))),
            )
        )
    return np.array(points)


def test_points_of_heatmaps_are_found_and_drawn(around):
    """Without the network: heatmaps with a high place each, for a picture twice as high as wide."""
    picture = np.zeros((512, 256, 3), np.uint8)
    file = cv2.imencode(".png", picture)[1].tobytes()
    random = np.random.default_rng(2)
    heatmaps = random.uniform(-9, -8, (GRID, GRID, MAPS)).astype(np.float32)
    for number in range(MAPS):
        x, y = random.integers(20, 44), random.integers(4, 60)
        heatmaps[y, x, number] = 4 if number % 4 else -2
        heatmaps[y - 1 : y + 2 : 2, x, number] = random.uniform(-6, -4, 2)
        heatmaps[y, x - 1 : x + 2 : 2, number] = random.uniform(-6, -4, 2)

    prepared = around.infer("prepare_person", {"image": [[file]]})
    found = around.infer(
        "find_points", {"heatmaps": heatmaps[None], "geometry": prepared["geometry"]}
    )["keypoints"]
    answer = around.infer("draw_points", {"image": [[file]], "keypoints": found})

    expected = points_by_hand(heatmaps, scales=(0.5, 0.5), corner=(64, 0))
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-4)
    drawn = cv2.imdecode(np.frombuffer(answer["picture"][0, 0], np.uint8), cv2.IMREAD_COLOR)
    assert drawn.shape == picture.shape
    for x, y, score in expected:
        assert score < 0.5 or drawn[round(y), round(x)].min() > 200


@pytest.mark.parametrize("name", ["china.jpg", "flower.jpg"])
def test_points_are_those_of_a_loop_by_hand(server, name):
    """The photographs show no person: the network is unsure, and its answers must still be the same."""
    datasets = pytest.importorskip("sklearn.datasets")
    photographs = Path(datasets.__file__).parent / "images"
    # A file without losses: decoders of JPEG differ by a grey level.
    picture = cv2.imread(str(photographs / name))[: 300 if name == "china.jpg" else None]
    file = cv2.imencode(".png", picture)[1].tobytes()

    answer = server.infer("estimate_pose", {"image": [[file]]}, outputs=["keypoints"])

    found, expected = answer["keypoints"][0], by_hand(picture)
    np.testing.assert_allclose(found[:, 2], expected[:, 2], atol=2e-3)
    # A point may move where two places of a heatmap are about equally high.
    close = np.abs(found[:, :2] - expected[:, :2]).max(axis=1) < 0.01
    assert close.mean() > 0.9


def person():
    spec = importlib.util.find_spec("skimage")
    if spec is None or spec.origin is None:
        pytest.skip("the picture of a person is in a package: scikit-image")
    return (Path(spec.origin).parent / "data" / "astronaut.png").read_bytes()


def test_the_face_of_a_person_is_where_it_is(server):
    """Points in the portrait of an astronaut, read from the picture by eye; it faces the camera."""
    answer = server.infer("estimate_pose", {"image": [[person()]]})

    points = answer["keypoints"][0]
    nose, left_eye, right_eye, left_shoulder, right_shoulder = points[[0, 2, 5, 11, 12]]
    assert points[[0, 2, 5, 11, 12], 2].min() > 0.5
    np.testing.assert_allclose(nose[:2], (221, 125), atol=25)
    assert right_eye[0] < nose[0] < left_eye[0]
    assert max(left_eye[1], right_eye[1]) < nose[1] < min(left_shoulder[1], right_shoulder[1])
    assert right_shoulder[0] < nose[0] < left_shoulder[0]


def test_the_picture_comes_back_with_the_points(server):
    file = person()
    picture = cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR)

    answer = server.infer("estimate_pose", {"image": [[file]]})

    drawn = cv2.imdecode(np.frombuffer(answer["picture"][0, 0], np.uint8), cv2.IMREAD_COLOR)
    assert drawn.shape == picture.shape
    for x, y, score in answer["keypoints"][0][[0, 11, 12]]:
        assert score > 0.5
        if 0 <= x < drawn.shape[1] and 0 <= y < drawn.shape[0]:
            assert drawn[round(y), round(x)].min() > 200
