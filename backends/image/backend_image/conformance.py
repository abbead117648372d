"""Pictures and the tensors that must come of them: python -m core_testing image"""

import json
from pathlib import Path

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_image import backend
from backend_image.opencv import cv2
from backend_image.recipe import FILE

SIZE = 6
STEPS = [
    {"decode": {}},
    {"resize": {"size": SIZE, "method": "area"}},
    {"tensor": {"scale": 255, "layout": "NCHW"}},
]


def pictures(count: int, height: int = 24, width: int = 18) -> np.ndarray:
    """Return PNG files as BYTES[count, 1]."""
    found = np.empty((count, 1), object)
    for i in range(count):
        pixels = np.random.default_rng(i).integers(0, 256, (height, width, 3), np.uint8)
        found[i, 0] = cv2.imencode(".png", pixels)[1].tobytes()
    return found


def tensors(files: np.ndarray) -> dict[str, np.ndarray]:
    """Return the outputs for PNG files, computed by OpenCV and numpy."""
    pixels, geometry = [], []
    for file in files[:, 0]:
        picture = np.asarray(cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR))
        height, width = picture.shape[:2]
        small = np.asarray(cv2.resize(picture, (SIZE, SIZE), interpolation=cv2.INTER_AREA))
        pixels.append(small[..., ::-1].transpose(2, 0, 1).astype(np.float32) / np.float32(255))
        geometry.append([width, height, SIZE / width, SIZE / height, 0, 0])
    return {"pixels": np.stack(pixels), "geometry": np.array(geometry, np.float32)}


class TestImage(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "strings"}

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        return _example(tmp_path, pictures(4))

    @pytest.fixture
    def strings_example(self, tmp_path: Path) -> Example:
        return _example(tmp_path, pictures(2, 30, 7))

    @pytest.fixture
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        return [_example(tmp_path, pictures(2, *sides)) for sides in ((24, 18), (6, 6), (9, 40))]


def _example(folder: Path, files: np.ndarray) -> Example:
    (folder / FILE).write_text(json.dumps(STEPS))
    return Example(
        backend,
        folder,
        inputs={"image": files},
        expected=tensors(files),
        failing={"image": np.array([[b"no picture"]] * len(files), object)},
    )
