"""Sizes: bytes as text, and the devices whose memory is counted.

"8G", "500M", "50%"  ◄─► bytes        "8G" and "host:8G" mean the host, "gpu0:8G" the first GPU
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from core.errors import invalid

HOST = "host"
Bytes = dict[str, int]  # device → bytes

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT]?)(?:i?B)?|(%))", re.IGNORECASE)
_DEVICE = re.compile(r"host|gpu\d+")


def read_sizes(what: str, text: str, totals: Mapping[str, int] | None = None) -> Bytes:
    """Return device → bytes of a text such as "8G,gpu0:50%".

    what     the option or parameter, for the error
    totals   memory of each device, for per cent; None if per cent is not allowed

    Raises CoreError(INVALID) for anything else, for zero bytes, and for per cent of an unknown device.
    """
    found: Bytes = {}
    for part in text.split(","):
        device, _, size = part.strip().rpartition(":")
        device = device.strip().lower() or HOST
        if _DEVICE.fullmatch(device) is None:
            raise invalid(f"{what}: there is no device '{device}', expected host or gpu<number>")
        if device in found:
            raise invalid(f"{what}: '{text}' has two sizes for {device}, expected one")
        found[device] = _bytes(what, size.strip(), device, totals)
    return found


def _bytes(what: str, text: str, device: str, totals: Mapping[str, int] | None) -> int:
    match = _SIZE.fullmatch(text)
    if match is None or (match[3] and totals is None):
        of_all = "" if totals is None else " or 50%"
        raise invalid(f"{what}: '{text}' is no size, expected one such as 500M, 8G{of_all}")
    if match[3]:
        assert totals is not None
        if device not in totals:
            raise invalid(
                f"{what}: the memory of {device} is unknown here, so {text} of it is too; give bytes"
            )
        size = int(totals[device] * float(match[1]) / 100)
    else:
        size = int(float(match[1]) * 2 ** _UNITS[match[2].upper()])
    if size < 1:
        raise invalid(f"{what}: '{text}' is no memory, expected at least one byte")
    return size


def shown(size: int) -> str:
    """Return bytes as text with a unit: "1.5 GiB"."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 2**power:
            return f"{size / 2**power:.1f} {unit}"
    return f"{size} bytes"


def added(sizes: Iterable[Mapping[str, int]]) -> Bytes:
    """Return the sums, device by device."""
    found: Bytes = {}
    for each in sizes:
        for device, size in each.items():
            found[device] = found.get(device, 0) + size
    return found
