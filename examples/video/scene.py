"""Discs, squares and triangles that move and bounce off each other: pictures whose boxes are known.

for picture, boxes, kinds in scene(seed=1, frames=50): …
"""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np

KINDS = ("disc", "square", "triangle")
WIDTH, HEIGHT = 768, 576
RATE = 25  # frames per second

_FRACTION = 4  # bits of a coordinate below the pixel, for OpenCV
_REACH = 1.45  # of a shape beyond its half side: the corner of a square, and a gap

Frame = tuple[np.ndarray, np.ndarray, np.ndarray]


def scene(
    seed: int,
    frames: int,
    objects: int = 6,
    *,
    cross: bool = False,
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Iterator[Frame]:
    """Yield a picture UINT8[height, width, 3], boxes FP32[n, 4] as x1, y1, x2, y2, and kinds INT64[n].

    Object i is row i of each frame.

    cross   the shapes pass each other, and the later ones hide the earlier ones
    size    width and height; enough for the objects side by side
    """
    random = np.random.default_rng(seed)
    width, height = size
    radius = random.uniform(36, 60, objects)
    centre = places(random, radius, size)
    angle = random.uniform(0, 2 * np.pi, objects)
    speed = random.uniform(2, 6, objects)
    velocity = np.stack([np.cos(angle), np.sin(angle)], 1) * speed[:, None]
    kinds = random.integers(0, len(KINDS), objects)
    colours = random.integers(80, 256, (objects, 3))
    ground = background(random, size)
    noise = random.integers(0, 4, (height, width + 97, 1), np.uint8)
    for number in range(frames):
        shift = number * 31 % 97
        picture = ground + noise[:, shift : shift + width]
        for i in range(objects):
            draw(picture, KINDS[kinds[i]], centre[i], radius[i], colours[i])
        boxes = np.concatenate([centre - radius[:, None], centre + radius[:, None]], 1)
        yield picture, boxes.astype(np.float32), kinds
        move(centre, velocity, radius, size, cross)


def places(random: np.random.Generator, radius: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return centres FP64[n, 2] of shapes that do not touch."""
    chosen: list[np.ndarray] = []
    tries = 0
    while len(chosen) < len(radius):
        tries += 1
        if tries % 100 == 0:
            chosen = []  # the first ones leave no room for the others
        own = radius[len(chosen)]
        centre = random.uniform([own, own], [size[0] - own, size[1] - own])
        reach = _REACH * (own + radius[: len(chosen)])
        if all(np.hypot(*(centre - each)) > far for each, far in zip(chosen, reach, strict=True)):
            chosen.append(centre)
    return np.array(chosen)


def background(random: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Return a dark picture UINT8[height, width, 3] whose colour changes slowly."""
    corners = random.integers(5, 60, (2, 2, 3)).astype(np.uint8)
    return cv2.resize(corners, size, interpolation=cv2.INTER_LINEAR)


def move(
    centre: np.ndarray,
    velocity: np.ndarray,
    radius: np.ndarray,
    size: tuple[int, int],
    cross: bool,
) -> None:
    """Move each shape by a frame, in place. Shapes that meet exchange their velocities along their line."""
    centre += velocity
    edge = radius[:, None]
    limit = np.array(size)
    velocity[centre < edge] = np.abs(velocity[centre < edge])
    velocity[centre > limit - edge] = -np.abs(velocity[centre > limit - edge])
    np.clip(centre, edge, limit - edge, out=centre)
    if cross:
        return
    for i in range(len(radius)):
        for j in range(i):
            apart = centre[i] - centre[j]
            distance = np.hypot(*apart)
            along = apart / distance
            closing = (velocity[i] - velocity[j]) @ along
            if distance < _REACH * (radius[i] + radius[j]) and closing < 0:
                velocity[i] -= closing * along
                velocity[j] += closing * along


def draw(
    picture: np.ndarray, kind: str, centre: np.ndarray, radius: float, colour: np.ndarray
) -> None:
    """Draw one shape, whose box has `radius` around its centre."""
    shade = tuple(int(each) for each in colour)
    # OpenCV counts from the middle of the first pixel, boxes from its edge.
    x, y = centre - 0.5
    if kind == "disc":
        middle = (fixed(x), fixed(y))
        cv2.circle(picture, middle, fixed(radius), shade, -1, cv2.LINE_AA, _FRACTION)
        return
    left, right, top, bottom = x - radius, x + radius, y - radius, y + radius
    if kind == "square":
        corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    else:
        corners = [(left, bottom), (right, bottom), (x, top)]
    points = np.array([[fixed(a), fixed(b)] for a, b in corners], np.int32)
    cv2.fillConvexPoly(picture, points, shade, cv2.LINE_AA, _FRACTION)


def fixed(value: float) -> int:
    """Return a coordinate as OpenCV's integers."""
    return round(float(value) * (1 << _FRACTION))
