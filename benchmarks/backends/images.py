"""Pictures: backend-image compared with the same steps, written with OpenCV and numpy in a bare loop.

    python -m benchmarks.backends.images [--rounds=N] [--json=FILE]

JPEG files of three sizes become tensors of a classifier (resize, normalise; `like_pil` resizes as Pillow
does, and its loop is Pillow's) and of a detector (letterbox), and files with 20 boxes drawn. Outputs of
YOLOv8 of two sizes become boxes. The server runs in this process and gets eight pictures in one request, as
the loop does. Both take turns in short rounds, so other work on the machine affects both. The table gives
the server's time per picture, and the median of the loop's time divided by it: above 1, the server is
faster. A second table compares decoders. Results that differ end the program with status 1. OpenCV uses one
thread. It needs Pillow.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FILES = 8
SIZES = {"small": (240, 320), "medium": (480, 640), "large": (1080, 1920)}  # height, width
OUTPUTS = {"7 x 768": (3, 768), "84 x 8400": (80, 8400)}  # of YOLOv8: classes, boxes
REPEATED = 10  # detections are short
BOXES, RED = 20, (50, 50, 255)  # of a picture; the colour of a box without an id, blue first
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
STEPS: dict[str, list[dict[str, Any]]] = {
    "classify": [
        {"decode": {}},
        {"resize": {"size": 224}},
        {"tensor": {"scale": 255, "mean": list(MEAN), "std": list(STD)}},
    ],
    "like_pil": [
        {"decode": {}},
        {"resize": {"size": 224, "like": "pil"}},
        {"tensor": {"scale": 255, "mean": list(MEAN), "std": list(STD)}},
    ],
    "detect": [{"decode": {}}, {"letterbox": {"size": 640}}, {"tensor": {"scale": 255}}],
    "draw": [{"draw": {"thickness": 2}}, {"encode": {"quality": 80}}],
    "detections": [{"detections": {"format": "yolov8"}}],
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backends.images")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    import cv2

    cv2.setNumThreads(1)
    results = measure(options.rounds)
    decoders = [compare_decoders(name, options.rounds) for name in SIZES]
    print(f"{'steps':11} {'pictures':>10} {'ms/picture':>11} {'loop/server':>12}")
    for each in results:
        print(
            f"{each['steps']:11} {each['pictures']:>10} {each['ms_per_picture']:11.3f} {each['times']:12.2f}"
        )
    print(
        f"\n{'decoder, ms':12} " + " ".join(f"{name:>11}" for name in decoders[0] if name != "size")
    )
    for each in decoders:
        shown = " ".join(f"{value:11.2f}" for name, value in each.items() if name != "size")
        print(f"{each['size']:12} {shown}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"steps": results, "decoders": decoders}, file, indent=1)


def measure(rounds: int) -> list[dict[str, Any]]:
    """Return the server's time per picture and the loop's time divided by it, for all steps and sizes."""
    import core

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, steps in STEPS.items():
            version = Path(folder, name, "1")
            version.mkdir(parents=True)
            (version / "image.json").write_text(json.dumps(steps))
        with core.Server(model_repository=folder) as server:
            for name in LOOPS:
                for size in SIZES:
                    found.append(compare_preparation(server, name, size, rounds))
            for size in SIZES:
                found.append(compare_drawing(server, size, rounds))
            for size in OUTPUTS:
                found.append(compare_detections(server, size, rounds))
    return found


def compare_preparation(server: Any, name: str, size: str, rounds: int) -> dict[str, Any]:
    files = [jpeg(seed, *SIZES[size]) for seed in range(FILES)]
    image = np.empty((FILES, 1), object)
    image[:, 0] = files

    def served() -> np.ndarray:
        return np.asarray(server.infer(name, {"image": image})["pixels"])

    def loop() -> np.ndarray:
        return np.stack([LOOPS[name](file) for file in files])

    if not np.allclose(served(), loop(), atol=1e-5):
        sys.exit(f"{name}, {size}: the tensors differ from those of the loop")
    return compare(name, size, served, loop, rounds)


def compare_drawing(server: Any, size: str, rounds: int) -> dict[str, Any]:
    height, width = SIZES[size]
    image = np.empty((FILES, 1), object)
    image[:, 0] = [jpeg(seed, height, width) for seed in range(FILES)]
    random = np.random.default_rng(0)
    corners = random.integers(0, (width // 2, height // 2), (FILES, BOXES, 2))
    opposite = corners + np.array([width // 4, height // 4])
    boxes = np.concatenate([corners, opposite], axis=2).astype(np.float32)

    def served() -> list[bytes]:
        found = server.infer("draw", {"image": image, "boxes": boxes})["picture"]
        return [bytes(file) for file in found[:, 0]]

    def loop() -> list[bytes]:
        return [draw(file, each) for file, each in zip(image[:, 0], boxes, strict=True)]

    if served() != loop():
        sys.exit(f"draw, {size}: the files differ from those of the loop")
    return compare("draw", size, served, loop, rounds)


def compare_detections(server: Any, size: str, rounds: int) -> dict[str, Any]:
    rows = np.stack([predictions(seed, *OUTPUTS[size]) for seed in range(FILES)])

    def served() -> dict[str, Any]:
        for _ in range(REPEATED):
            found = server.infer("detections", {"predictions": rows})
        return dict(found)

    def loop() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for _ in range(REPEATED):
            found = [find(row) for row in rows]
        return found

    answer = served()
    for i, expected in enumerate(loop()):
        count = int(answer["count"][i, 0])
        ours = (answer[name][i, :count] for name in ("boxes", "scores", "classes"))
        if not all(map(np.array_equal, ours, expected)):
            sys.exit(f"detections, {size}: they differ from those of the loop")
    return compare("detections", size, served, loop, rounds, REPEATED)


def compare(
    name: str,
    size: str,
    served: Callable[[], Any],
    loop: Callable[[], Any],
    rounds: int,
    repeated: int = 1,
) -> dict[str, Any]:
    """Return the time per picture of `served`, and that of `loop` divided by it: medians."""
    ours, ratios = [], []
    for _ in range(rounds):
        fast, slow = seconds(served), seconds(loop)
        ours.append(fast / FILES / repeated * 1e3)
        ratios.append(slow / fast)
    return {
        "steps": name,
        "pictures": size,
        "ms_per_picture": statistics.median(ours),
        "times": statistics.median(ratios),
    }


def classify(file: bytes) -> np.ndarray:
    """Return the tensor FP32[3, 224, 224] of one file, as a user of OpenCV would write it."""
    import cv2

    picture: Any = cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR)
    picture = cv2.cvtColor(cv2.resize(picture, (224, 224)), cv2.COLOR_BGR2RGB)
    pixels = picture.astype(np.float32) / np.float32(255)
    pixels = (pixels - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def like_pil(file: bytes) -> np.ndarray:
    """Return the same tensor, as a user of Pillow would write it."""
    image = importlib.import_module("PIL.Image")
    picture = image.open(io.BytesIO(file)).convert("RGB")
    pixels = np.asarray(picture.resize((224, 224), image.BILINEAR)).astype(np.float32)
    pixels = (pixels / np.float32(255) - np.array(MEAN, np.float32)) / np.array(STD, np.float32)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def draw(file: bytes, boxes: np.ndarray) -> bytes:
    """Return a JPEG file of the picture with boxes drawn."""
    import cv2

    picture: Any = cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR)
    for x1, y1, x2, y2 in boxes.astype(int).tolist():
        cv2.rectangle(picture, (x1, y1), (x2, y2), RED, 2)
    return bytes(cv2.imencode(".jpeg", picture, [cv2.IMWRITE_JPEG_QUALITY, 80])[1].tobytes())


def detect(file: bytes) -> np.ndarray:
    """Return the tensor FP32[3, 640, 640] of one file, in a letterbox."""
    import cv2

    picture: Any = cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR)
    height, width = picture.shape[:2]
    scale = min(640 / height, 640 / width)
    to_height, to_width = round(height * scale), round(width * scale)
    top, left = (640 - to_height) // 2, (640 - to_width) // 2
    picture = cv2.resize(picture, (to_width, to_height))
    picture = cv2.copyMakeBorder(
        picture,
        top,
        640 - to_height - top,
        left,
        640 - to_width - left,
        cv2.BORDER_CONSTANT,
        value=(114, 114, 114),
    )
    pixels = cv2.cvtColor(picture, cv2.COLOR_BGR2RGB).transpose(2, 0, 1)
    return np.asarray(np.ascontiguousarray(pixels).astype(np.float32) / np.float32(255))


LOOPS = {"classify": classify, "like_pil": like_pil, "detect": detect}


def find(row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return boxes, scores and classes of one output FP32[4 + classes, n] of YOLOv8."""
    import cv2

    scores = row[4:].max(axis=0)
    chosen = np.flatnonzero(scores >= 0.25)
    chosen = chosen[np.argsort(-scores[chosen], kind="stable")]
    scores, classes = scores[chosen], row[4:, chosen].argmax(axis=0).astype(np.int32)
    centre, half = row[:2, chosen].T.astype(np.float64), row[2:4, chosen].T.astype(np.float64) / 2
    corners = np.concatenate([centre - half, centre + half], axis=1)
    rectangles = np.concatenate([centre - half, half * 2], axis=1)
    kept = cv2.dnn.NMSBoxesBatched(
        rectangles.tolist(), scores.tolist(), classes.tolist(), 0.25, 0.45
    )
    order = np.asarray(kept, np.int64).reshape(-1)[:300]
    return corners[order].astype(np.float32), scores[order], classes[order]


def predictions(seed: int, classes: int, boxes: int) -> np.ndarray:
    """Return an output FP32[4 + classes, boxes] of YOLOv8: 20 objects, with five boxes each."""
    random = np.random.default_rng(seed)
    found = random.uniform(0, 0.1, (4 + classes, boxes)).astype(np.float32)
    found[:2] = random.uniform(50, 590, (2, boxes))
    found[2:4] = random.uniform(10, 60, (2, boxes))
    places = random.choice(boxes, (20, 5), replace=False)
    for place in places:
        found[:4, place] = found[:4, place[:1]] + random.uniform(0, 3, (4, 5))
        found[4 + random.integers(classes), place] = random.uniform(0.3, 1, 5)
    return found


def compare_decoders(size: str, rounds: int) -> dict[str, Any]:
    """Return the least time of each decoder for one file, in ms. Packages that are missing are left out."""
    file = jpeg(0, *SIZES[size])
    found: dict[str, Any] = {"size": size}
    candidates: dict[str, Callable[[], Any]] = {}
    for name, make in DECODERS.items():
        try:
            candidates[name] = make(file)
        except ImportError:
            continue
    for name in candidates:
        found[name] = float("inf")
    for _ in range(rounds):
        for name, decode in candidates.items():
            found[name] = min(found[name], seconds(decode) * 1e3)
    return found


def _opencv(file: bytes) -> Callable[[], Any]:
    cv2 = importlib.import_module("cv2")
    return lambda: cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR)


def _pillow(file: bytes) -> Callable[[], Any]:
    image = importlib.import_module("PIL.Image")
    return lambda: np.asarray(image.open(io.BytesIO(file)).convert("RGB"))


def _simplejpeg(file: bytes) -> Callable[[], Any]:
    simplejpeg = importlib.import_module("simplejpeg")
    return lambda: simplejpeg.decode_jpeg(file, "BGR")


def _imagecodecs(file: bytes) -> Callable[[], Any]:
    imagecodecs = importlib.import_module("imagecodecs")
    return lambda: imagecodecs.jpeg8_decode(file)


DECODERS = {
    "simplejpeg": _simplejpeg,
    "imagecodecs": _imagecodecs,
    "opencv": _opencv,
    "pillow": _pillow,
}


def jpeg(seed: int, height: int, width: int) -> bytes:
    """Return a JPEG file of a random picture with areas, edges and noise."""
    import cv2

    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (height // 16, width // 16, 3), np.uint8)
    smooth = np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC))
    noisy = np.clip(smooth.astype(np.int16) + random.integers(-6, 6, smooth.shape), 0, 255)
    options = [cv2.IMWRITE_JPEG_QUALITY, 90]
    return bytes(cv2.imencode(".jpg", noisy.astype(np.uint8), options)[1].tobytes())


def seconds(act: Callable[[], Any]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
