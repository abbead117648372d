"""How well the tracks fit scenes whose objects are known, by the metric HOTA of the package `trackeval`."""

import numpy as np
import pytest
from backend_tracker.native.streams import Streams
from backend_tracker.scenes import scene

trackeval = pytest.importorskip("trackeval", reason="trackeval is not installed")


def overlaps(one, other):
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(-1)
    area, other_area = (np.prod(each[:, 2:] - each[:, :2], axis=-1) for each in (one, other))
    return shared / (area[:, None] + other_area[None] - shared)


def hota(frames, settings):
    """Return HOTA over all thresholds of a tracker on a scene."""
    streams = Streams(settings)
    stream = streams.begin()
    truth, ids, similar = [], [], []
    for frame in frames:
        found, states, _ = streams.update(stream, frame.boxes, frame.scores, frame.classes)
        tracked = states == 2
        truth.append(frame.objects)
        ids.append(found[tracked])
        similar.append(overlaps(frame.positions, frame.boxes[tracked]))
    data = {
        "gt_ids": truth,
        "tracker_ids": ids,
        "similarity_scores": similar,
        "num_gt_ids": 1 + max(each.max(initial=-1) for each in truth),
        "num_tracker_ids": 1 + max(each.max(initial=-1) for each in ids),
        "num_gt_dets": sum(map(len, truth)),
        "num_tracker_dets": sum(map(len, ids)),
    }
    return float(np.mean(trackeval.metrics.HOTA().eval_sequence(data)["HOTA"]))


@pytest.mark.parametrize("tracker", ["bytetrack", "ocsort", "botsort"])
def test_exact_detections_give_nearly_perfect_tracks(read_settings, tracker):
    frames = scene(seed=5, frames=150, objects=12, missed=0, false=0, noise=0)

    found = hota(frames, read_settings(tracker, high_conf_det_threshold=0.1, **first(tracker)))

    assert found > 0.9


@pytest.mark.parametrize("tracker", ["bytetrack", "ocsort", "botsort"])
def test_missed_and_false_detections_cost_little(read_settings, tracker):
    frames = scene(seed=5, frames=150, objects=12, missed=0.05, false=0.5, noise=1)

    found = hota(frames, read_settings(tracker, high_conf_det_threshold=0.3, **first(tracker)))

    assert found > 0.75


def first(tracker):
    """Return the parameter that makes a tracker begin tracks from detections with low scores."""
    return {} if tracker == "ocsort" else {"track_activation_threshold": 0.3}
