"""What a file says of its picture, before memory is allocated: format, size, orientation, its end."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_STARTS_OF_FRAME = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_SEQUENTIAL = frozenset({0xC0, 0xC1})  # baseline and extended, with Huffman coding
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
_MOST_MARKERS = 10_000  # and bytes that fill, before the first scan of a JPEG; usual are twenty
_MOST_CHUNKS = 100_000  # of a PNG or WebP file; 32 MB have 4,000 as libpng writes them
_MOST_SCANS = 100  # each scan of a progressive JPEG passes over all pixels; usual are ten
_ORIENTATION = 0x0112  # the tag of EXIF


class NoPicture(ValueError):
    """The bytes are no picture of a supported format, or not all of it. The message says which."""


@dataclass(frozen=True)
class Header:
    """Size in pixels before the orientation is applied. orientation: as in EXIF, 1 to 8; 1 is upright."""

    format: str
    width: int
    height: int
    orientation: int = 1


def read_header(data: bytes) -> Header:
    """Return the header of a JPEG, PNG, WebP or BMP file. Raises NoPicture. Reads no pixel."""
    for magic, read in (
        (b"\xff\xd8\xff", _jpeg),
        (b"\x89PNG\r\n\x1a\n", _png),
        (b"RIFF", _webp),
        (b"BM", _bmp),
    ):
        if data.startswith(magic):
            try:
                header = read(data)
            except (struct.error, IndexError):
                raise NoPicture(f"its {len(data)} bytes end within the header") from None
            if header.width < 1 or header.height < 1:
                raise NoPicture(f"its header says {header.width} x {header.height} pixels")
            return header
    begin = data[:8].hex(" ") if data else "nothing"
    raise NoPicture(
        f"it is no JPEG, PNG, WebP or BMP file; its {len(data)} bytes begin with {begin}"
    )


def _jpeg(data: bytes) -> Header:
    place, orientation = 2, 1
    frame: tuple[int, int, int] | None = None  # height, width, components
    sequential = False
    for _ in range(_MOST_MARKERS):
        # After FF 00, libjpeg would look for the next marker; a length would skip what it finds.
        if data[place] != 0xFF or data[place + 1] == 0:
            raise NoPicture(f"it is a JPEG file with a wrong marker at byte {place}")
        marker = data[place + 1]
        if marker == 0xFF:  # a fill byte
            place += 1
        elif marker in _WITHOUT_LENGTH:
            place += 2
        elif marker == 0xDA or marker == 0xD9:
            break
        else:
            (length,) = struct.unpack_from(">H", data, place + 2)
            if marker in _STARTS_OF_FRAME and frame is None:
                frame = struct.unpack_from(">HHB", data, place + 5)
                sequential = marker in _SEQUENTIAL
            elif marker == 0xE1 and data[place + 4 : place + 10] == b"Exif\0\0":
                orientation = orientation_of(data[place + 10 : place + 2 + length])
            place += 2 + max(length, 2)
    else:
        raise NoPicture(
            f"it is a JPEG file of {_MOST_MARKERS} markers or more before its first scan"
        )
    if frame is None:
        raise NoPicture("it is a JPEG file without a frame")
    height, width, components = frame
    if data.rfind(b"\xff\xd9") < place:
        raise NoPicture(f"it is a JPEG file of {len(data)} bytes without its end")
    # If the first scan has all components, libjpeg refuses a second one. Counting is a pass over the file.
    has_one_scan = sequential and data[place + 1] == 0xDA and data[place + 4] == components
    if not has_one_scan and (scans := data.count(b"\xff\xda", place)) > _MOST_SCANS:
        raise NoPicture(f"it is a JPEG file of {scans} scans, more than {_MOST_SCANS}")
    return Header("JPEG", width, height, orientation)


def _png(data: bytes) -> Header:
    width, height = struct.unpack_from(">II", data, 16)
    place, orientation = 8, 1
    for _ in range(_MOST_CHUNKS):
        length, kind = struct.unpack_from(">I4s", data, place)
        if place + 12 + length > len(data):
            raise NoPicture(f"it is a PNG file of {len(data)} bytes without its end")
        if kind == b"eXIf":
            orientation = orientation_of(data[place + 8 : place + 8 + length])
        if kind == b"IEND":
            return Header("PNG", width, height, orientation)
        place += 12 + length
    raise NoPicture(f"it is a PNG file of {_MOST_CHUNKS} chunks or more")


def _webp(data: bytes) -> Header:
    (length,) = struct.unpack_from("<I", data, 4)
    if data[8:12] != b"WEBP":
        raise NoPicture("it is a RIFF file, but no WebP file")
    if len(data) < length + 8:
        raise NoPicture(f"it is a WebP file of {length + 8} bytes, of which {len(data)} are there")
    kind = data[12:16]
    if kind == b"VP8 ":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", data, 26))
        return Header("WebP", width, height)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return Header("WebP", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind != b"VP8X":
        raise NoPicture(f"it is a WebP file with an unknown chunk {kind!r}")
    width = 1 + int.from_bytes(data[24:27], "little")
    height = 1 + int.from_bytes(data[27:30], "little")
    return Header("WebP", width, height, _webp_orientation(data))


def _webp_orientation(data: bytes) -> int:
    place = 12
    for _ in range(_MOST_CHUNKS):
        if place + 8 > len(data):
            break
        kind, length = struct.unpack_from("<4sI", data, place)
        if kind == b"EXIF":
            found = data[place + 8 : place + 8 + length]
            return orientation_of(found.removeprefix(b"Exif\0\0"))
        place += 8 + length + length % 2
    return 1


def _bmp(data: bytes) -> Header:
    offset, header_size, width, height = struct.unpack_from("<IIii", data, 10)
    bits, compression = struct.unpack_from("<HI", data, 28)
    if header_size < 40:
        raise NoPicture("it is a BMP file of OS/2, which is not supported")
    row = (abs(width) * bits + 31) // 32 * 4
    if compression in (0, 3) and len(data) < offset + row * abs(height):
        raise NoPicture(
            f"it is a BMP file of {offset + row * abs(height)} bytes, of which {len(data)} are there"
        )
    return Header("BMP", width, abs(height))


def orientation_of(exif: bytes) -> int:
    """Return the orientation in EXIF data (a TIFF header and its first directory); 1 if it has none."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4])
    if order is None:
        return 1
    try:
        (place,) = struct.unpack_from(f"{order}I", exif, 4)
        (count,) = struct.unpack_from(f"{order}H", exif, place)
        for i in range(count):
            tag, _, _, value = struct.unpack_from(f"{order}HHIH", exif, place + 2 + 12 * i)
            if tag == _ORIENTATION:
                return value if 1 <= value <= 8 else 1
    except struct.error:
        pass  # a damaged orientation does not make the picture unreadable
    return 1
