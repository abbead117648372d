"""ToTensor: UINT8[height, width, 3] ─► the tensor of a model, written to where the model reads it.

A pixel has 256 values, so a table of 256 results replaces the arithmetic: the results are exact, and the
order of the colours, the layout and the datatype cost no further pass.
"""

from __future__ import annotations

import numpy as np

from backend_image.native.pixels import look_up
from backend_image.options import Options
from core import dtypes
from core.dtypes import DataType

_DATATYPES = {
    "FP32": dtypes.FP32,
    "FP16": dtypes.FP16,
    "UINT8": dtypes.UINT8,
    "INT8": dtypes.INT8,
}
# A table has the bits of each result as one of these.
_BITS = {4: np.uint32, 2: np.uint16, 1: np.uint8}


class ToTensor:
    """The step `tensor`: (pixel / scale - mean) / std, computed in float32. Thread-safe.

    name        of the output
    dtype       of the output
    """

    def __init__(self, options: Options, channels: int, red_first: bool = False):
        """Read the options. `red_first` is the order of the colours of the pictures."""
        self.name = options.text("name", "pixels")
        self._channels = channels
        self._planar = options.choice("layout", "NCHW", ("NCHW", "NHWC")) == "NCHW"
        wants_red = options.choice("colour", "RGB", ("RGB", "BGR")) == "RGB"
        self._turned = wants_red is not red_first and channels == 3
        self.dtype: DataType = _DATATYPES[options.choice("datatype", "FP32", tuple(_DATATYPES))]
        scale = options.number("scale", 1, 1e-6, 1e6)
        mean = options.floats("mean", 0, channels)
        deviation = options.floats("std", 1, channels)
        if not all(deviation):
            raise options.wrong("std", "numbers other than 0")
        self._tables = np.stack(
            [_table(scale, mean[i], deviation[i], self.dtype.numpy) for i in range(channels)]
        )

    def shape(self, height: int, width: int) -> tuple[int, int, int]:
        """Return the shape of the tensor of a picture."""
        if self._planar:
            return self._channels, height, width
        return height, width, self._channels

    def __call__(self, picture: np.ndarray, out: np.ndarray) -> None:
        """Write the tensor of a picture to `out`."""
        pixels = picture[..., None] if picture.ndim == 2 else picture
        if self._turned:
            pixels = pixels[..., ::-1]
        bits = out.view(self._tables.dtype)
        look_up(pixels, self._tables, bits if self._planar else bits.transpose(2, 0, 1))


def _table(scale: float, mean: float, deviation: float, dtype: np.dtype) -> np.ndarray:
    """Return the result for each value of a pixel, as bits. Whole numbers are rounded and clipped."""
    values = np.arange(256, dtype=np.float32)
    values = (values / np.float32(scale) - np.float32(mean)) / np.float32(deviation)
    if dtype.kind != "f":
        range_ = np.iinfo(dtype)
        values = values.round().clip(range_.min, range_.max)
    return np.asarray(values.astype(dtype).view(_BITS[dtype.itemsize]))
