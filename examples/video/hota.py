"""How well tracks fit a film whose objects are known: python examples/video/hota.py [--seconds=10] [--cross]

    rendered film ─► H.264 ─► RTSP ─► the server of serve.py ─► events ─► HOTA of the package trackeval

All frames are compared, also the first one, in which no object has a track yet. The status is 1 if HOTA is
below --least. With --cross, shapes hide each other, and hidden ones count as well.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
from pathlib import Path

import camera
import make_film
import numpy as np
from served import Served, models

METRICS = ("HOTA", "DetA", "AssA", "LocA")


def main() -> None:
    parser = argparse.ArgumentParser(prog="hota.py")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--cross", action="store_true")
    parser.add_argument("--least", type=float, default=0.98)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder, "film.mp4")
        truth = make_film.render(film, given.seconds, given.seed, given.cross)
        tracks = tracked(film, len(truth), Path(folder))
    found = scores([np.array(each) for each in truth], tracks)
    print(f"{len(truth)} frames, {len(truth[0])} objects")
    print(", ".join(f"{name} {value:.4f}" for name, value in found.items()))
    if found["HOTA"] < given.least:
        sys.exit(f"HOTA is below {given.least}")


def tracked(film: Path, frames: int, folder: Path) -> list[list[tuple[int, list[float]]]]:
    """Return the tracks (id, box) of each frame, as the server finds them in a camera that plays the film."""
    # The first client waits until the camera accepts it.
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"rtsp://127.0.0.1:{listener.getsockname()[1]}/film"
    # The tracks of all frames, also on a slow machine: the camera then waits.
    repository = models(folder, policy="all")
    with Served(repository, {"film": url}) as server:
        events = server.events()
        camera.start(camera.Film(film), listener)
        found = []
        for event in events:
            if "tracks" in event:
                if event["index"] != len(found) or event["notice"]:
                    sys.exit(f"frame {len(found)} is missing: {event}")
                found.append([(each["id"], each["box"]) for each in event["tracks"]])
            if len(found) == frames:
                return found
    sys.exit(f"the events ended after {len(found)} frames")


def scores(
    truth: list[np.ndarray], tracks: list[list[tuple[int, list[float]]]]
) -> dict[str, float]:
    """Return HOTA and its parts, each the mean over all thresholds of the overlap."""
    import trackeval

    ids = [np.array([id for id, _ in each], int) for each in tracks]
    boxes = [np.array([box for _, box in each]).reshape(-1, 4) for each in tracks]
    data = {
        "gt_ids": [np.arange(len(each)) for each in truth],
        "tracker_ids": ids,
        "similarity_scores": [overlaps(a, b) for a, b in zip(truth, boxes, strict=True)],
        "num_gt_ids": max(map(len, truth)),
        "num_tracker_ids": 1 + max((int(each.max(initial=-1)) for each in ids), default=-1),
        "num_gt_dets": sum(map(len, truth)),
        "num_tracker_dets": sum(map(len, ids)),
    }
    found = trackeval.metrics.HOTA().eval_sequence(data)
    return {name: float(np.mean(found[name])) for name in METRICS}


def overlaps(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the intersection over union of each box of one frame with each of another."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(-1)
    area, other_area = (np.prod(each[:, 2:] - each[:, :2], axis=-1) for each in (one, other))
    return shared / (area[:, None] + other_area[None] - shared)


if __name__ == "__main__":
    main()
