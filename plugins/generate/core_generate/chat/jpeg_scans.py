"""check_scans: whether a JPEG file has so few scans that it can be decoded in a short time."""

from __future__ import annotations

import re

MOST_SCANS = 100
"""Each scan of a progressive JPEG passes over all pixels; ten are usual."""

_MOST_SEGMENTS = 10_000  # of a JPEG file, up to the end of its image; hundreds are usual
# Begin of a segment, or the end of the image. Markers below C0 and those of restarts have no length.
_MARKER = re.compile(rb"\xff([\xc0-\xcf\xd9-\xfe])")
_END, _SCAN = b"\xd9", b"\xda"


class TooManyScans(ValueError):
    """A JPEG file of more scans or segments than are allowed. The message continues "the image "."""


def may_have_many(data: bytes) -> bool:
    """Return whether a JPEG file may have more than MOST_SCANS. Faster than `check_scans`."""
    return data.count(b"\xff" + _SCAN) > MOST_SCANS


def check_scans(data: bytes) -> None:
    """Raise TooManyScans for a JPEG file of more scans or segments than are allowed.

    Only the image counts, as in libjpeg: previews are inside of segments, and videos or further images of a
    camera follow its end.
    """
    scans, at = 0, 2
    for _ in range(_MOST_SEGMENTS):
        found = _MARKER.search(data, at)
        if found is None or found[1] == _END:
            return
        at = found.end()
        if found[1] == _SCAN and (scans := scans + 1) > MOST_SCANS:
            raise TooManyScans(
                f"is a JPEG file of {scans} scans or more, at most {MOST_SCANS} are allowed"
            )
        at += max(int.from_bytes(data[at : at + 2], "big"), 2)
    raise TooManyScans(f"is a JPEG file of {_MOST_SEGMENTS:,} segments or more, fewer are allowed")
