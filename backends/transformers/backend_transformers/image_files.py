"""Files of images: PNG, JPEG and WebP ─► pixels, with bounds that are checked before anything is decoded."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from io import BytesIO
from typing import Any

from core_generate.chat.media import image_size
from PIL import Image, ImageOps

_FORMATS = ("PNG", "JPEG", "WEBP")
_MOST_RATIO = (
    20  # resizing makes the shorter side as long as the model needs, and the longer side with it
)
_MOST_SCANS = 100  # each scan of a progressive JPEG passes over all pixels; ten are usual
_MOST_SEGMENTS = 10_000  # of a JPEG file, up to the end of its image; hundreds are usual
# Begin of a segment, or the end of the image. Markers below C0 and those of restarts have no length.
_MARKER = re.compile(rb"\xff([\xc0-\xcf\xd9-\xfe])")
_END, _SCAN = b"\xd9", b"\xda"


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
        _check_scans(data)
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


def _check_scans(data: bytes) -> None:
    """Raise UnreadableImage for a JPEG file of more scans or segments than are allowed.

    Only the image counts, as in libjpeg: previews are inside of segments, and videos or further images of a
    camera follow its end.
    """
    scans, at = 0, 2
    for _ in range(_MOST_SEGMENTS):
        found = _MARKER.search(data, at)
        if found is None or found[1] == _END:
            return
        at = found.end()
        if found[1] == _SCAN and (scans := scans + 1) > _MOST_SCANS:
            raise UnreadableImage(
                f"is a JPEG file of {scans} scans or more, at most {_MOST_SCANS} are allowed"
            )
        at += max(int.from_bytes(data[at : at + 2], "big"), 2)
    raise UnreadableImage(
        f"is a JPEG file of {_MOST_SEGMENTS:,} segments or more, fewer are allowed"
    )


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
