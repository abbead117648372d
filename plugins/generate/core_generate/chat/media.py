"""Reads images and sound of data: URLs. A URL with another scheme is refused: nothing is fetched.

The size of an image is read from its header, before anything decodes it.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct

from core_generate import compressed_sound, wave_file
from core_generate.chat.fields import FieldError
from core_generate.chat.jpeg_scans import TooManyScans, check_scans, may_have_many

MOST_PIXELS = 50_000_000  # of one image: 150 MB in memory once it is decoded
MOST_SIDE = 32_768  # pixels

_MOST_HEAD = 1_000  # characters of a URL before its data
_JPEG_SIZES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # the markers of frames
_JPEG_BARE = {0x01, *range(0xD0, 0xD8)}  # markers without a length
_JPEG_MOST_MARKERS = 10_000  # before the first scan; more would take long to read
_JPEG_MOST_BETWEEN = 65_536  # bytes that belong to no segment, at one place
_NOT_FF = re.compile(rb"[^\xff]")


def read_url(url: str, kind: str, path: str) -> bytes:
    """Return the file in a data: URL with base64. Raises FieldError for any other URL, or an empty file.

    kind   "image" or "audio": the media type, if the URL has one, must begin with it
    path   of the field with the URL, for the error
    """
    head, comma, body = url.partition(",")
    if not head[:5].lower() == "data:":
        raise FieldError(
            path,
            f"expected a data: URL such as data:{kind}/…;base64,…, found '{url[:40]}'; "
            "this server fetches no URLs: send the file itself",
        )
    if len(head) > _MOST_HEAD:
        raise FieldError(
            path,
            f"expected at most {_MOST_HEAD:,} characters before the comma of a data: URL, "
            f"found {len(head):,}",
        )
    media_type, *options = head[5:].split(";")
    if not comma or "base64" not in [each.strip().lower() for each in options]:
        raise FieldError(path, "expected a data: URL with ';base64,' before the data")
    if media_type and not media_type.strip().lower().startswith(f"{kind}/"):
        raise FieldError(path, f"expected a media type {kind}/…, found '{media_type[:40]}'")
    return read_base64(body, path)


def read_base64(text: str, path: str) -> bytes:
    """Return the bytes that a base64 text encodes. Raises FieldError if it is not valid, or empty."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise FieldError(path, "the data is not valid base64") from None
    if not data:
        raise FieldError(path, "the file is empty")
    return data


def check_image(data: bytes, path: str) -> bytes:
    """Return `data` if it is a PNG, JPEG, GIF, WebP or BMP file within the bounds, else raise FieldError.

    The bounds: width and height of 1 to MOST_SIDE pixels, MOST_PIXELS in all, and in a JPEG file MOST_SCANS
    of core_generate.chat.jpeg_scans. Nothing is decoded.
    """
    try:
        size = image_size(data)
    except (struct.error, IndexError):
        raise FieldError(path, "the header of the image is cut off") from None
    if size is None:
        raise FieldError(path, "expected an image: PNG, JPEG, GIF, WebP or BMP")
    width, height = size
    if not (0 < width <= MOST_SIDE and 0 < height <= MOST_SIDE) or width * height > MOST_PIXELS:
        raise FieldError(
            path,
            f"the image has {width} x {height} pixels; allowed are {MOST_PIXELS:,} in all, "
            f"and 1 to {MOST_SIDE:,} in a row or column",
        )
    if data[:2] == b"\xff\xd8" and may_have_many(data):
        try:
            check_scans(data)
        except TooManyScans as error:
            raise FieldError(path, f"the image {error}") from None
    return data


def check_audio(data: bytes, path: str) -> bytes:
    """Return `data` if it begins as a file that core_generate.sound reads, else raise FieldError."""
    if not (wave_file.is_wave(data) or compressed_sound.demuxer(data)):
        raise FieldError(path, "expected a WAV, MP3, MP4, FLAC, Ogg, WebM or AAC file")
    return data


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels from the header of an image, None for an unknown format.

    Raises struct.error or IndexError if the header is cut off.
    """
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        if data[12:16] != b"IHDR":  # a later one would count
            return None
        width, height = struct.unpack_from(">II", data, 16)
        return width, height
    if data[:6] in (b"GIF87a", b"GIF89a"):
        width, height = struct.unpack_from("<HH", data, 6)
        return width, height
    if data[:2] == b"BM":
        return _bmp_size(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp_size(data)
    if data[:3] == b"\xff\xd8\xff":
        return _jpeg_size(data)
    return None


def _bmp_size(data: bytes) -> tuple[int, int]:
    (header,) = struct.unpack_from("<I", data, 14)
    width, height = struct.unpack_from("<HH" if header == 12 else "<ii", data, 18)
    return width, abs(height)


def _webp_size(data: bytes) -> tuple[int, int] | None:
    form = data[12:16]
    if form == b"VP8X":
        width, width_high, height, height_high = struct.unpack_from("<HBHB", data, 24)
        return (width | width_high << 16) + 1, (height | height_high << 16) + 1
    if form == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Return the largest width and the largest height of all frames before the first scan.

    Programs that read JPEG differ in which frame counts. (0, 0) if there is no frame; raises as `image_size`.
    """
    width = height = 0
    at = 2
    for _ in range(_JPEG_MOST_MARKERS):
        at = data.find(b"\xff", at, at + _JPEG_MOST_BETWEEN)  # readers skip bytes between segments
        found = _NOT_FF.search(data, at, at + _JPEG_MOST_BETWEEN) if at >= 0 else None
        if found is None:
            raise IndexError
        marker = data[found.start()]
        at = found.end()
        if marker in _JPEG_BARE or marker == 0:
            continue
        if marker in (0xDA, 0xD9):  # the scan, or the end
            return width, height
        if marker in _JPEG_SIZES:
            rows, columns = struct.unpack_from(">HH", data, at + 3)
            width, height = max(width, columns), max(height, rows)
        at += max(struct.unpack_from(">H", data, at)[0], 2)
    raise IndexError
