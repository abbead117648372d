"""Files of images: PNG, JPEG and WebP ─► pixels, with bounds that are checked before anything is decoded."""

from __future__ import annotations

import base64
import binascii
import struct
from io import BytesIO
from typing import Any

from core_generate.chat.jpeg_scans import TooManyScans, check_scans
from core_generate.chat.media import image_size
from PIL import Image, ImageOps

_FORMATS = ("PNG", "JPEG", "WEBP")
_MOST_RATIO = (
    20  # resizing makes the shorter side as long as the model needs, and the longer side with it
)


class UnreadableImage(ValueError):
    """A file that is no image, or one outside of the bounds. The message continues "image 3 "."""


class TooLargeImage(UnreadableImage):
    """An image of more pixels than are allowed."""


def read_image(data: bytes, most_pixels: int) -> Any:
    """Return the image of a file as PIL's Image in RGB, upright as EXIF says. Thread-safe.

    data   the file, or its base64 form
    Raises UnreadableImage. The size is known from the header, before memory is allocated for pixels.
    """
    data = _file(data)
    _check_size(_size(data), most_pixels)
    if data[:2] == b"\xff\xd8":
        try:
            check_scans(data)
        except TooManyScans as error:
            raise UnreadableImage(str(error)) from None
    try:
        image = Image.open(BytesIO(data), formats=_FORMATS)
    except Exception:  # Pillow has no common error for damaged files
        raise UnreadableImage("is no PNG, JPEG or WebP file, or a damaged one") from None
    _check_size(image.size, most_pixels)  # what Pillow allocates
    try:
        ImageOps.exif_transpose(image, in_place=True)
        return image.convert("RGB")
    except MemoryError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UnreadableImage(f"is a damaged {image.format} file: {reason}") from None


def _file(data: bytes) -> bytes:
    """Return what `data` encodes if it is base64, else `data`: no file of these formats is ASCII."""
    if data.isascii():
        try:
            return base64.b64decode(b"".join(data.split()), validate=True)
        except binascii.Error:
            pass
    return data


def _size(data: bytes) -> tuple[int, int]:
    try:
        found = image_size(data)
    except (struct.error, IndexError):
        raise UnreadableImage("has a header that is cut off") from None
    if found is None:
        begin = data[:8].hex(" ") or "nothing"
        raise UnreadableImage(
            f"is no PNG, JPEG or WebP file: its {len(data)} bytes begin with {begin}"
        )
    return found


def _check_size(size: tuple[int, int], most_pixels: int) -> None:
    width, height = size
    if width < 1 or height < 1 or width * height > most_pixels:
        raise TooLargeImage(
            f"has {width:,} x {height:,} pixels, from 1 to {most_pixels:,} are allowed; send a smaller "
            "image, or load the model with another parameter 'max_megapixels'"
        )
    if max(size) > _MOST_RATIO * min(size):
        raise UnreadableImage(
            f"has {width:,} x {height:,} pixels; the longer side may have at most {_MOST_RATIO} times the "
            "pixels of the shorter side"
        )
