"""Draw seven.png, a handwritten 7, from digit.json: python examples/clients/make_seven.py [FILE]

64 x 64 pixels, black on white as a scanner gives them. Needs pillow and numpy.
"""

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image

HERE = Path(__file__).parent


def draw(file: Path) -> None:
    (pixels,) = json.loads((HERE / "digit.json").read_text())["inputs"]
    grey = np.array(pixels["data"], np.float32).reshape(8, 8)  # 0 is white, 16 is black
    small = Image.fromarray(np.round(255 - grey * (255 / 16)).astype(np.uint8), "L")
    small.resize((64, 64), Image.Resampling.NEAREST).save(file, optimize=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "seven.png")
