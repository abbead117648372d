"""Generated scenes with known tracks, for tests and benchmarks.

for frame in scene(seed=1, frames=100, objects=20):
    frame.boxes, frame.scores, frame.classes, frame.truth
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SIZE = 1000.0  # of the picture, in pixels


@dataclass(frozen=True)
class Frame:
    """The detections of one frame, in no order.

    boxes     FP32[n, 4]: x1, y1, x2, y2
    scores    FP32[n]
    classes   INT32[n]
    truth     INT64[n]: the object of each detection; -1 for a false one
    objects   INT64[m] and positions FP32[m, 4]: the objects that are there, and their exact boxes
    """

    boxes: np.ndarray
    scores: np.ndarray
    classes: np.ndarray
    truth: np.ndarray
    objects: np.ndarray
    positions: np.ndarray


def scene(
    seed: int,
    frames: int,
    objects: int,
    *,
    missed: float = 0.1,
    false: float = 0.5,
    noise: float = 1.5,
    turning: float = 0.5,
    whole_pixels: bool = False,
) -> list[Frame]:
    """Return the frames of a scene: objects appear, move, cross, hide each other and leave.

    missed         probability that an object is not detected in a frame
    false          mean number of false detections in a frame
    noise          of the corners, in pixels
    turning        change of the velocity from frame to frame, in pixels
    whole_pixels   round the boxes to whole pixels: many overlaps are then equal
    """
    random = np.random.default_rng(seed)
    centre = random.uniform(0, SIZE, (objects, 2))
    velocity = random.normal(0, 4, (objects, 2))
    size = random.uniform(20, 120, (objects, 2))
    kind = random.integers(0, 80, objects)
    birth = random.integers(0, max(1, frames // 2), objects)
    death = birth + random.integers(2, max(3, frames), objects)
    found = []
    for number in range(frames):
        centre += velocity
        velocity += random.normal(0, turning, velocity.shape)
        velocity[(centre < 0) | (centre > SIZE)] *= -1
        there = np.flatnonzero((birth <= number) & (number < death))
        exact = np.concatenate([centre - size / 2, centre + size / 2], axis=1)[there]
        seen = random.random(len(there)) >= missed
        boxes = exact[seen] + random.normal(0, noise, (int(seen.sum()), 4))
        scores = random.beta(4, 1.3, len(boxes))
        corner = random.uniform(0, SIZE, (random.poisson(false), 2))
        wrong = np.concatenate([corner, corner + random.uniform(5, 80, corner.shape)], axis=1)
        boxes = np.concatenate([boxes, wrong])
        if whole_pixels:
            boxes = boxes.round()
        order = random.permutation(len(boxes))
        weak = random.random(len(wrong)) * 0.8
        kinds = np.concatenate([kind[there][seen], random.integers(0, 80, len(wrong))])
        truth = np.concatenate([there[seen], np.full(len(wrong), -1)])
        found.append(
            Frame(
                boxes=boxes[order].astype(np.float32),
                scores=np.concatenate([scores, weak])[order].astype(np.float32),
                classes=kinds[order].astype(np.int32),
                truth=truth[order],
                objects=there,
                positions=exact.astype(np.float32),
            )
        )
    return found
