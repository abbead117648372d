"""The same work without a server: python examples/video/loop.py NAME=URL…

A thread for each video decodes with PyAV, and sends each frame through OpenCV, onnxruntime and the compiled
tracker. Each frame becomes a line of JSON on stdout, like an event of the server. bench.py compares both.

It is the usual code: each whole frame becomes RGB, and the detector runs for one frame at a time. The server
keeps frames in NV12 up to the small picture, and runs frames of several videos as one batch.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import av
import cv2
import numpy as np
import onnxruntime
import orjson
from backend_tracker.native.streams import Streams
from backend_tracker.settings import settings_of

from core.config import ModelConfig

MODELS = Path(__file__).parent / "models"
ACROSS, DOWN = 256, 192
SCORE, OVERLAP = 0.3, 0.45


class Detector:
    """Boxes of a picture. Thread-safe."""

    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        file = str(MODELS / "detect" / "1" / "model.onnx")
        self._session = onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])
        self._labels = (MODELS / "find_objects" / "1" / "kinds.txt").read_text().split()

    def __call__(self, picture: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
        """Return boxes FP32[n, 4], scores FP32[n], classes INT32[n] and labels."""
        height, width = picture.shape[:2]
        scale = min(ACROSS / width, DOWN / height)
        size = (round(width * scale), round(height * scale))
        left, top = (ACROSS - size[0]) // 2, (DOWN - size[1]) // 2
        canvas = np.zeros((DOWN, ACROSS, 3), np.uint8)
        canvas[top : top + size[1], left : left + size[0]] = cv2.resize(picture, size)
        pixels = cv2.dnn.blobFromImage(canvas, 1 / 255)
        (rows,) = self._session.run(None, {"pixels": pixels})[0]
        certain = rows[4:].max(axis=0)
        kept = np.flatnonzero(certain > SCORE)
        x, y, w, h = rows[:4, kept]
        scores, classes = certain[kept], rows[4:, kept].argmax(axis=0)
        corners = np.stack([x - w / 2, y - h / 2, w, h], axis=1)
        chosen = np.array(cv2.dnn.NMSBoxesBatched(corners, scores, classes, SCORE, OVERLAP), int)
        boxes = corners[chosen]
        boxes[:, 2:] += boxes[:, :2]
        boxes = (boxes - np.array([left, top, left, top], np.float32)) / np.float32(scale)
        names = [self._labels[kind] for kind in classes[chosen]]
        return boxes, scores[chosen], classes[chosen].astype(np.int32), names


def watch(name: str, url: str, detect: Detector) -> None:
    """Print the tracks of each frame of a video."""
    tracker = Streams(settings_of(ModelConfig(name="loop"), MODELS / "follow_objects" / "1"))
    stream = tracker.begin()
    with av.open(url, options={"rtsp_transport": "tcp"}) as container:
        video = container.streams.video[0]
        video.codec_context.thread_count = 1
        for index, frame in enumerate(container.decode(video)):
            came_ns = time.monotonic_ns()
            boxes, scores, classes, labels = detect(frame.to_ndarray(format="rgb24"))
            ids, _, _ = tracker.update(stream, boxes, scores, classes)
            rows = zip(ids.tolist(), labels, scores.tolist(), boxes.tolist(), strict=True)
            event = {
                **{"video": name, "index": index, "ms": (time.monotonic_ns() - came_ns) / 1e6},
                "tracks": [
                    {"id": id, "label": label, "score": round(score, 4), "box": box}
                    for id, label, score, box in rows
                    if id >= 0
                ],
            }
            sys.stdout.buffer.write(orjson.dumps(event) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    cv2.setNumThreads(1)
    detector = Detector()
    for each in sys.argv[1:]:
        threading.Thread(target=watch, args=(*each.split("=", 1), detector)).start()
