"""Decodes images for llama.cpp.

llama.cpp tries a program, ffprobe, on what its own decoder cannot read, so it gets nothing but bitmaps.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence

from core_generate.chat import media
from core_generate.engine import never
from PIL import Image, ImageOps

from core.errors import cancelled, invalid

MOST_PIXELS = 2048 * 2048  # of one image: llama.cpp reduces each to the size that its model sees
MOST_OF_A_REQUEST = (
    4 * MOST_PIXELS
)  # of all images: 50 MB as bitmaps, which llama.cpp gets in base64
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
_DEEP = ("I", "I;16", "I;16L", "I;16B", "I;16N")  # grey with 16 bits


def bitmaps(files: Sequence[bytes], stopped: Callable[[], bool] = never) -> Iterator[bytes]:
    """Yield each image as a BMP file, at most MOST_OF_A_REQUEST pixels in all.

    Raises as `bitmap`, and CoreError(CANCELLED) if `stopped` returns True after an image.
    """
    most = min(MOST_PIXELS, MOST_OF_A_REQUEST // max(1, len(files)))
    for each in files:
        made = bitmap(each, most)
        if stopped():
            raise cancelled()
        yield made


def bitmap(data: bytes, most: int = MOST_PIXELS) -> bytes:
    """Return an image as a BMP file: RGB, upright as its EXIF data say, over white where it is transparent.

    data   a PNG, JPEG, GIF, WebP or BMP file; of several frames the first is taken
    most   pixels; a larger image is reduced
    Raises CoreError(INVALID) for a file that cannot be decoded or has more pixels than core_generate allows.
    Slow for a large image; without the GIL.
    """
    try:
        with Image.open(io.BytesIO(media.check_image(data, "image")), formats=_FORMATS) as image:
            _check_size(image)
            ratio = (most / (image.width * image.height)) ** 0.5
            if ratio < 1:
                size = int(image.width * ratio), int(image.height * ratio)
                image.thumbnail((max(size[0], 1), max(size[1], 1)))
            found = _colours(ImageOps.exif_transpose(image))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise invalid(f"an image cannot be decoded: {error}") from None
    written = io.BytesIO()
    found.save(written, "BMP")
    return written.getvalue()


def _check_size(image: Image.Image) -> None:
    """Refuse an image in which Pillow has found another size than the check of its header."""
    if image.width * image.height > media.MOST_PIXELS:
        raise ValueError(f"it has {image.width} x {image.height} pixels")


def _colours(image: Image.Image) -> Image.Image:
    if image.mode in _DEEP:  # Pillow itself would make white of all but the darkest
        image = image.convert("I").point(lambda value: value / 257).convert("L")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")
