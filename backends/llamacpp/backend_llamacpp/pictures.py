"""Decodes images for llama.cpp.

llama.cpp tries a program, ffprobe, on what its own decoder cannot read, so it gets nothing but bitmaps.
"""

from __future__ import annotations

import io

from PIL import Image, ImageOps

from core.errors import invalid

MOST_PIXELS = 4096 * 4096  # models see far fewer: llama.cpp reduces each image to their size
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")


def bitmap(data: bytes) -> bytes:
    """Return an image as a BMP file: RGB, upright as its EXIF data say, with at most MOST_PIXELS.

    data   a PNG, JPEG, GIF, WebP or BMP file, whose header core_generate has checked; of several frames the
           first is taken
    Raises CoreError(INVALID) for a file that cannot be decoded. Slow for a large image; without the GIL.
    """
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            width, height = image.size
            ratio = (MOST_PIXELS / (width * height)) ** 0.5
            if ratio < 1:
                image.thumbnail((int(width * ratio), int(height * ratio)))
            found = ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise invalid(f"an image cannot be decoded: {error}") from None
    written = io.BytesIO()
    found.save(written, "BMP")
    return written.getvalue()
