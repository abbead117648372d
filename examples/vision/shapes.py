"""Pictures of discs, squares and triangles that move, with their boxes: a video whose truth is known.

for picture, boxes, kinds, objects in video(seed=1, frames=50): …
"""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np

KINDS = ("disc", "square", "triangle")
SIDE = 128  # of a picture, in pixels

Frame = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def video(seed: int, frames: int, objects: int = 4, side: int = SIDE) -> Iterator[Frame]:
    """Yield a picture UINT8[side, side, 3], boxes FP32[n, 4], kinds INT64[n] and object numbers INT64[n]."""
    random = np.random.default_rng(seed)
    centre = random.uniform(0.15, 0.85, (objects, 2)) * side
    velocity = random.normal(0, side / 80, (objects, 2))
    radius = random.uniform(side / 16, side / 9, objects)
    kind = random.integers(0, len(KINDS), objects)
    colour = random.integers(90, 256, (objects, 3))
    ground = random.integers(0, 70, 3)
    for _ in range(frames):
        centre += velocity
        velocity[(centre < radius[:, None]) | (centre > side - radius[:, None])] *= -1
        picture = np.clip(ground + random.normal(0, 6, (side, side, 3)), 0, 255).astype(np.uint8)
        for i in range(objects):
            draw(picture, kind[i], centre[i], radius[i], colour[i])
        boxes = np.concatenate([centre - radius[:, None], centre + radius[:, None]], axis=1)
        yield picture, boxes.clip(0, side).astype(np.float32), kind, np.arange(objects)


def draw(
    picture: np.ndarray, kind: int, centre: np.ndarray, radius: float, colour: np.ndarray
) -> None:
    """Draw one shape, whose box has `radius` around its centre."""
    shade = tuple(int(each) for each in colour)
    low, high = np.round(centre - radius).astype(int), np.round(centre + radius).astype(int)
    if KINDS[kind] == "disc":
        cv2.circle(
            picture, tuple(np.round(centre).astype(int).tolist()), round(float(radius)), shade, -1
        )
    elif KINDS[kind] == "square":
        cv2.rectangle(picture, tuple(low.tolist()), tuple(high.tolist()), shade, -1)
    else:
        corners = np.array(
            [[low[0], high[1]], [high[0], high[1]], [int(centre[0]), low[1]]], np.int32
        )
        cv2.fillPoly(picture, [corners], shade)


def overlaps(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the intersection over union of a box with other boxes."""
    low, high = np.maximum(one[:2], others[:, :2]), np.minimum(one[2:], others[:, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=1)
    areas = (others[:, 2:] - others[:, :2]).prod(axis=1)
    return shared / ((one[2:] - one[:2]).prod() + areas - shared)
