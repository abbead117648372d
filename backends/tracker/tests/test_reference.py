"""The ids are those of the package `trackers`, frame by frame."""

import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from backend_tracker.scenes import Frame, scene
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

supervision = pytest.importorskip("supervision")
reference = pytest.importorskip("trackers")

TRACKERS = {
    "bytetrack": lambda **given: reference.ByteTrackTracker(**given),
    "ocsort": lambda **given: reference.OCSORTTracker(**given),
    "botsort": lambda **given: reference.BoTSORTTracker(enable_cmc=False, **given),
}
PARAMETERS = {
    "bytetrack": {
        "track_activation_threshold": st.sampled_from([0.0, 0.25, 0.7, 0.9]),
        "minimum_iou_threshold": st.sampled_from([0.0, 0.1, 0.5]),
    },
    "ocsort": {
        "minimum_iou_threshold": st.sampled_from([0.05, 0.3, 0.5]),
        "direction_consistency_weight": st.sampled_from([0.0, 0.2, 1.0]),
        "delta_t": st.integers(1, 5),
    },
    "botsort": {
        "track_activation_threshold": st.sampled_from([0.0, 0.25, 0.7, 0.9]),
        "minimum_iou_threshold_first_assoc": st.sampled_from([0.05, 0.2, 0.5]),
        "minimum_iou_threshold_second_assoc": st.sampled_from([0.1, 0.5]),
        "minimum_iou_threshold_unconfirmed_assoc": st.sampled_from([0.1, 0.3]),
        "instant_first_frame_activation": st.booleans(),
    },
}
COMMON = {
    "lost_track_buffer": st.sampled_from([0, 1, 5, 30]),
    "frame_rate": st.sampled_from([5.0, 29.97, 60.0]),
    "minimum_consecutive_frames": st.integers(1, 4),
    "high_conf_det_threshold": st.sampled_from([0.05, 0.4, 0.6, 0.8]),
}


def expected(frames, tracker, **parameters):
    """Return the ids of the reference for the detections of each frame, in their order."""
    running = TRACKERS[tracker](**parameters)
    found = []
    for frame in frames:
        numbers = np.arange(len(frame.boxes))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = running.update(
                supervision.Detections(
                    xyxy=frame.boxes.copy(), confidence=frame.scores.copy(), class_id=numbers
                )
            )
        ids = np.full(len(numbers), -1)
        if len(answer):
            ids[answer.class_id] = answer.tracker_id
        found.append(ids.tolist())
    return found


def frame_of(boxes, score=0.9):
    array = np.array(boxes, np.float32).reshape(-1, 4)
    none = np.empty(0, np.int64)
    scores = np.full(len(array), score, np.float32)
    return Frame(array, scores, np.zeros(len(array), np.int32), none, none, array)


@pytest.mark.parametrize("objects", [1, 8, 40])
@pytest.mark.parametrize("tracker", TRACKERS)
def test_objects_that_appear_cross_and_leave_get_the_ids_of_the_reference(track, tracker, objects):
    frames = scene(seed=objects, frames=100, objects=objects)

    found = track(frames, tracker)

    assert found == expected(frames, tracker)
    assert max(id for ids in found for id in ids) >= objects // 2


@pytest.mark.parametrize("tracker", TRACKERS)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_scene_and_parameters_give_the_ids_of_the_reference(track, tracker, data):
    frames = scene(
        data.draw(st.integers(0, 10**6)),
        data.draw(st.integers(2, 40)),
        data.draw(st.integers(0, 25)),
        missed=data.draw(st.sampled_from([0.0, 0.2, 0.5])),
        false=data.draw(st.sampled_from([0.0, 3.0])),
        turning=data.draw(st.sampled_from([0.0, 4.0])),
        whole_pixels=data.draw(st.booleans()),
    )
    parameters = data.draw(st.fixed_dictionaries({}, optional={**COMMON, **PARAMETERS[tracker]}))

    assert track(frames, tracker, **parameters) == expected(frames, tracker, **parameters)


@pytest.mark.parametrize("tracker", TRACKERS)
def test_an_occlusion_ends_with_the_ids_of_the_reference(track, tracker):
    """Two objects cross; one of them is hidden for some frames, then for longer than the buffer."""
    frames = []
    for i in range(120):
        seen = [[10 + 5 * i, 100, 60 + 5 * i, 220]]
        if not 20 <= i < 32 and not 50 <= i < 90:
            seen.append([600 - 5 * i, 110, 650 - 5 * i, 230])
        frames.append(frame_of(seen))

    assert track(frames, tracker) == expected(frames, tracker)


@pytest.mark.parametrize("tracker", TRACKERS)
def test_equal_boxes_get_the_ids_of_the_reference(track, tracker):
    """A grid of boxes, each of them twice: every overlap is a tie."""
    grid = [[x, y, x + 20, y + 20] for x in range(0, 80, 10) for y in range(0, 80, 10)]
    frames = [
        frame_of(grid[:: 1 + i % 3] * 2, score) for i, score in enumerate([0.9, 0.7, 0.5] * 5)
    ]

    assert track(frames, tracker) == expected(frames, tracker)


@pytest.mark.parametrize("tracker", TRACKERS)
def test_boxes_without_area_get_the_ids_of_the_reference(track, tracker):
    frames = [
        frame_of([[10, 10, 10, 50], [30, 30, 90, 30], [5, 5, 5, 5], [100 + i, 0, 150 + i, 50]])
        for i in range(12)
    ]

    assert track(frames, tracker) == expected(frames, tracker)


@pytest.mark.parametrize("tracker", TRACKERS)
def test_frames_without_detections_count_like_those_of_the_reference(track, tracker):
    """At the beginning, between detections, and until the track ends."""
    box = [[0, 0, 50, 50]]
    counts = [0, 0, 1, 1, 1, 1, 0, 0, 1, 1, *[0] * 31, 1, 1, 1, 1]
    frames = [frame_of(box * count) for count in counts]

    assert track(frames, tracker) == expected(frames, tracker)


@pytest.fixture(scope="module")
def sequences():
    """Two sequences of MOT 2015, which the package `motmetrics` carries. Only its files are read."""
    found = find_spec("motmetrics")
    folder = Path(found.origin).parent / "data" if found is not None else Path()
    if not (folder / "TUD-Campus").is_dir():
        pytest.skip("two public sequences are in a package: pip install motmetrics")
    return folder


def frames_of(file):
    """Return the detections of each frame.

    A line has a frame from 1 on, an id, and x, y, width, height. There are no scores; these depend on the
    line, so that every threshold of a tracker is met.
    """
    rows = np.loadtxt(file, delimiter=",")
    scores = np.random.default_rng(0).uniform(0.2, 1, len(rows)).astype(np.float32)
    corners = np.concatenate([rows[:, 2:4], rows[:, 2:4] + rows[:, 4:6]], axis=1).astype(np.float32)
    none = np.empty(0, np.int64)
    found = []
    for number in range(1, int(rows[:, 0].max()) + 1):
        here = rows[:, 0] == number
        classes = np.zeros(here.sum(), np.int32)
        found.append(Frame(corners[here], scores[here], classes, none, none, corners[here]))
    return found


@pytest.mark.parametrize("tracker", TRACKERS)
@pytest.mark.parametrize("boxes", ["gt", "test"])
@pytest.mark.parametrize(("name", "count"), [("TUD-Campus", 71), ("TUD-Stadtmitte", 179)])
def test_filmed_pedestrians_get_the_ids_of_the_reference(
    track, sequences, tracker, name, count, boxes
):
    """The boxes are the annotated ones, then those that a tracker has found."""
    frames = frames_of(sequences / name / f"{boxes}.txt")

    found = track(frames, tracker)

    assert len(found) == count
    assert found == expected(frames, tracker)
    assert len({id for ids in found for id in ids if id >= 0}) >= 5
