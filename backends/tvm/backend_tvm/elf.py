"""Check a shared library before the dynamic linker maps it: a truncated one would end the process.

file ─► [elf] ─► executable.
"""

from __future__ import annotations

import platform
import struct

_MACHINES = {"x86_64": 62, "aarch64": 183, "ppc64le": 21, "riscv64": 243, "s390x": 22}
_SHARED = 3  # e_type of a shared library
_HEADER = struct.Struct("<16x2HI3QI6H")  # of a file of 64 bits in little endian, from e_type on
_SEGMENT = struct.Struct("<2I6Q")
_MAGIC = b"\x7fELF\x02\x01"


def check_library(content: memoryview) -> None:
    """Raise ValueError with the reason if the content is no whole shared library for this machine.

    It finds truncated files, whose table of sections is at the end, but no changed bytes.
    """
    if not content:
        raise ValueError("it is empty")
    if bytes(content[: len(_MAGIC)]) != _MAGIC or len(content) < _HEADER.size:
        raise ValueError("it is no shared library (ELF of 64 bits)")
    fields = _HEADER.unpack_from(content)
    kind, machine, _, _, segments_at, sections_at = fields[:6]
    _, _, segment_size, segments, section_size, sections, _ = fields[6:]
    if kind != _SHARED:
        raise ValueError(
            "it is an object file, not a shared library; write it with export_library('model.so')"
        )
    here = platform.machine()
    if here in _MACHINES and machine != _MACHINES[here]:
        names = {number: name for name, number in _MACHINES.items()}
        found = names.get(machine, f"a machine with the number {machine}")
        raise ValueError(f"it is for {found}, this machine is {here}; compile it for this one")
    ends = [segments_at + segments * segment_size, sections_at + sections * section_size]
    if segment_size == _SEGMENT.size and ends[0] <= len(content):
        for place in range(segments):
            each = _SEGMENT.unpack_from(content, segments_at + place * segment_size)
            ends.append(each[2] + each[5])
    if max(ends) > len(content):
        raise ValueError(f"it is truncated: {len(content)} of {max(ends)} bytes are there")
