"""A sound for an example request: half a second of silence, which a shell makes."""

from __future__ import annotations

import struct
from string import ascii_letters

_RATE = 16_000  # samples of 16 bits in a second
_SIZE = _RATE  # bytes of half a second


def silence() -> str:
    """Return commands of a POSIX shell that write a WAV file without sound to their standard output."""
    form = struct.pack("<HHIIHH", 1, 1, _RATE, 2 * _RATE, 2, 16)
    head = b"RIFF" + struct.pack("<I", 36 + _SIZE) + b"WAVE"
    head += b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", _SIZE)
    return f"printf '{_escaped(head)}'; head -c {_SIZE} /dev/zero"


def _escaped(data: bytes) -> str:
    """Return bytes as `printf` of a shell reads them: letters, and octal numbers of the others."""
    shown = (chr(each) for each in data)
    return "".join(each if each in ascii_letters else f"\\{ord(each):03o}" for each in shown)
