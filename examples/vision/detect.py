"""Send a picture to the ensemble `detect_shapes`: python examples/vision/detect.py [FILE] [SERVER]

Without a file, it draws one. It prints what the picture shows, and writes it with boxes to detected.jpg. It
needs `tritonclient[http]` and opencv-python-headless.
"""

import sys
from pathlib import Path

import cv2
import numpy as np
import tritonclient.http as http
from shapes import draw


def drawn() -> bytes:
    """Return a picture of 320 x 240 pixels with a disc, a square and a triangle."""
    picture = np.full((240, 320, 3), 40, np.uint8)
    shapes = (
        (70, 80, 45, (60, 200, 240)),
        (230, 70, 30, (220, 120, 90)),
        (170, 170, 50, (90, 220, 90)),
    )
    for kind, (x, y, radius, colour) in enumerate(shapes):
        draw(picture, kind, np.array([x, y], float), radius, np.array(colour))
    return cv2.imencode(".png", picture)[1].tobytes()


def main() -> None:
    file = Path(sys.argv[1]).read_bytes() if len(sys.argv) > 1 else drawn()
    server = sys.argv[2] if len(sys.argv) > 2 else "localhost:8000"
    image = http.InferInput("image", [1, 1], "BYTES")
    image.set_data_from_numpy(np.array([[file]], object))
    with http.InferenceServerClient(server) as client:
        answer = client.infer("detect_shapes", [image])
    found = (answer.as_numpy(name)[0] for name in ("labels", "scores", "boxes"))
    for label, score, box in zip(*found, strict=True):
        print(f"{score:.2f} {label.decode()} at {np.round(box).astype(int).tolist()}")
    Path("detected.jpg").write_bytes(answer.as_numpy("picture")[0, 0])


if __name__ == "__main__":
    main()
