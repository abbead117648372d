"""Draw and Encode: pictures with boxes, and pictures as files."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from backend_image.colours import turned
from backend_image.decode import Decode
from backend_image.headers import NoPicture
from backend_image.nv12 import Nv12
from backend_image.opencv import cv2
from backend_image.options import Options
from backend_image.stage import Outputs, RequestStage, Tensor
from core import dtypes
from core.request import InferenceRequest

IMAGE, PICTURE = "image", "picture"
BOXES, SCORES, CLASSES, LABELS, IDS = "boxes", "scores", "classes", "labels", "ids"


class Encoder:
    """The step `encode`: a picture, blue first, ─► the bytes of a JPEG or PNG file. Thread-safe."""

    def __init__(self, options: Options):
        self._suffix = f".{options.choice('format', 'jpeg', ('jpeg', 'png'))}"
        quality = options.count("quality", 90, 1, 100)
        compression = options.count("compression", 1, 0, 9)
        self._options = (
            [cv2.IMWRITE_JPEG_QUALITY, quality]
            if self._suffix == ".jpeg"
            else [cv2.IMWRITE_PNG_COMPRESSION, compression]
        )

    def __call__(self, picture: np.ndarray) -> bytes:
        try:
            done, data = cv2.imencode(self._suffix, picture, self._options)
        except cv2.error as error:
            raise NoPicture(f"OpenCV cannot encode it: {error.err}") from None
        if not done:
            raise NoPicture(f"OpenCV cannot encode {picture.shape[1]} x {picture.shape[0]} pixels")
        return bytes(data.tobytes())


class Encode(RequestStage):
    """Pixels UINT8[height, width, 3], red first, or NV12 as UINT8[3 · height / 2, width], as files."""

    def __init__(self, encoder: Encoder, name: str, *, nv12: bool = False):
        self._encoder = encoder
        self._input = name
        self._nv12 = nv12
        self.inputs = (Tensor(name, dtypes.UINT8, (-1, -1) if nv12 else (-1, -1, 3)),)
        self.outputs = (Tensor(PICTURE, dtypes.BYTES, (1,)),)

    def answer(self, request: InferenceRequest) -> Outputs:
        found = []
        for pixels in self.rows(request, self._input):
            if not pixels.size:
                raise NoPicture(f"'{self._input}' of shape {list(pixels.shape)} has no pixel")
            picture = (
                Nv12(np.ascontiguousarray(pixels)).pixels(red_first=False)
                if self._nv12
                else turned(pixels)
            )
            found.append({PICTURE: as_tensor(self._encoder(picture))})
        return self.joined(found)


class Draw(RequestStage):
    """A file and the boxes of what it shows ─► a file with the boxes drawn."""

    _OPTIONAL = (
        (SCORES, dtypes.FP32),
        (CLASSES, dtypes.INT32),
        (LABELS, dtypes.BYTES),
        (IDS, dtypes.INT64),
    )

    def __init__(self, options: Options, encoder: Encoder):
        self._thickness = options.count("thickness", 2, 1, 50)
        self._text = options.flag("text", True)
        self._decode = Decode(options)
        if self._decode.grey:
            raise options.wrong("colour", "colour: boxes are drawn in colours")
        self._encoder = encoder
        self.inputs = (
            Tensor(IMAGE, dtypes.BYTES, (1,)),
            Tensor(BOXES, dtypes.FP32, (-1, 4)),
            *(Tensor(name, dtype, (-1,), optional=True) for name, dtype in self._OPTIONAL),
        )
        self.outputs = (Tensor(PICTURE, dtypes.BYTES, (1,)),)

    def answer(self, request: InferenceRequest) -> Outputs:
        given: dict[str, np.ndarray] = {
            name: self.rows(request, name) for name, _ in self._OPTIONAL if name in request.inputs
        }
        boxes = self.rows(request, BOXES)
        for name, array in given.items():
            if array.shape != boxes.shape[:-1]:
                raise self.refused(
                    f"'{name}' has shape {list(array.shape)} and '{BOXES}' has {list(boxes.shape)}; each box "
                    f"needs one of {name}"
                )
        drawn = np.isfinite(boxes).all(axis=-1)
        if CLASSES in given:
            drawn &= given[CLASSES] >= 0  # other rows only fill the tensor
        corners = np.maximum(np.rint(boxes), -1)
        found = []
        for i, image in enumerate(self.rows(request, IMAGE)):
            picture = np.ascontiguousarray(self._decode(image.reshape(-1)[0]))
            (rows,) = drawn[i].nonzero()
            self._draw(picture, rows, corners[i], {name: array[i] for name, array in given.items()})
            found.append({PICTURE: as_tensor(self._encoder(picture))})
        return self.joined(found)

    def _draw(
        self,
        picture: np.ndarray,
        rows: np.ndarray,
        corners: np.ndarray,
        given: dict[str, np.ndarray],
    ) -> None:
        """Draw those boxes of `corners` FP32[boxes, 4] that `rows` names, with their colours and texts."""
        height, width = picture.shape[:2]
        ends = np.minimum(corners[rows], (width, height, width, height)).astype(int).tolist()
        numbers = given.get(IDS, given.get(CLASSES))
        colour = colour_of(0)
        for i, (x1, y1, x2, y2) in zip(rows.tolist(), ends, strict=True):
            if numbers is not None:
                colour = colour_of(int(numbers[i]))
            cv2.rectangle(picture, (x1, y1), (x2, y2), colour, self._thickness)
            text = _text_of(i, given) if self._text and given else ""
            if text:
                scale = 0.4 + 0.1 * self._thickness
                at = (x1, y1 - 4 if y1 > 16 else y1 + 16)
                cv2.putText(
                    picture, text, at, cv2.FONT_HERSHEY_SIMPLEX, scale, colour, 1, cv2.LINE_AA
                )


@lru_cache(maxsize=1024)
def colour_of(number: int) -> tuple[int, int, int]:
    """Return a colour, blue first. Neighbouring numbers have colours that differ clearly."""
    red, green, blue = colorsys.hsv_to_rgb(number * 0.618034 % 1.0, 0.8, 1.0)
    return int(255 * blue), int(255 * green), int(255 * red)


_SHOWN: dict[str, Callable[[Any], str]] = {
    IDS: lambda value: f"#{int(value)}" if value >= 0 else "",
    LABELS: lambda value: bytes(value).decode("ascii", "replace"),
    CLASSES: lambda value: str(int(value)),
    SCORES: lambda value: f"{float(value):.2f}",
}


def _text_of(i: int, given: dict[str, np.ndarray]) -> str:
    """Return the text of a box: id, label or class, score."""
    names = [name for name in _SHOWN if name in given and not (name == CLASSES and LABELS in given)]
    return " ".join(filter(None, (_SHOWN[name](given[name][i]) for name in names)))


def as_tensor(data: bytes) -> np.ndarray:
    found = np.empty(1, object)
    found[0] = data
    return found
