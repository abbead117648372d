"""Render a film of discs, squares and triangles that move: python examples/video/make_film.py FILE [SECONDS]

It has 25 frames per second of 768 x 576 pixels, and is H.264 in a file of the format that its name says, such
as film.mp4. --truth=FILE writes the boxes of each frame as JSON: rows of x1, y1, x2, y2, of which row i is
object i. It needs `av` and opencv-python-headless.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import av
import numpy as np
from scene import HEIGHT, RATE, WIDTH, scene

SECONDS = 4.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="make_film.py")
    parser.add_argument("file", type=Path)
    parser.add_argument("seconds", nargs="?", type=float, default=SECONDS)
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--cross", action="store_true", help="shapes pass and hide each other")
    given = parser.parse_args()
    truth = render(given.file, given.seconds, given.seed, given.cross)
    if given.truth is not None:
        given.truth.write_text(json.dumps(truth))


def render(
    file: Path, seconds: float, seed: int = 4, cross: bool = False
) -> list[list[list[float]]]:
    """Write the film; return the boxes of each frame."""
    truth = []

    def pictures() -> Iterable[np.ndarray]:
        for picture, boxes, _ in scene(seed, round(seconds * RATE), cross=cross):
            truth.append(boxes.tolist())
            yield picture

    file.parent.mkdir(parents=True, exist_ok=True)
    encode(file, pictures())
    return truth


def encode(file: Path, pictures: Iterable[np.ndarray]) -> None:
    """Write pictures as H.264, as a camera does: each frame at once, a whole picture each second."""
    with av.open(str(file), "w") as output:
        stream = output.add_stream("libx264", rate=RATE)
        stream.width, stream.height = WIDTH, HEIGHT
        stream.pix_fmt = "yuv420p"
        stream.options = {
            **{"preset": "veryfast", "tune": "zerolatency", "crf": "22"},
            **{"g": str(RATE), "x264-params": "sliced-threads=0"},
        }
        for picture in pictures:
            output.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        output.mux(stream.encode())


if __name__ == "__main__":
    main()
