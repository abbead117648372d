"""Render a film of discs, squares and triangles that move: python examples/video/make_film.py FILE [SECONDS]

It has 25 frames per second, and is H.264 in a file of the format that its name says, such as film.mp4. It
needs `av` and opencv-python-headless.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import av

RATE = 25
SIDE = 128
SHAPES = Path(__file__).parents[1] / "vision" / "shapes.py"


def main(file: Path, seconds: float) -> None:
    video = runpy.run_path(str(SHAPES))["video"]
    file.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(file), "w") as output:
        stream = output.add_stream("libx264", rate=RATE)
        stream.width = stream.height = SIDE
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": "18", "g": str(RATE)}
        for picture, *_ in video(seed=4, frames=round(seconds * RATE), side=SIDE):
            output.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        output.mux(stream.encode())


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 4)
