"""Arrays in the bytes of .npy and .npz files, as strangers send them: nothing larger than the file says."""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy

from core.errors import CoreError, invalid
from core.tensor import Buffer

_MOST_MEMBERS = 1000  # of an .npz file: one for each input of a model
_MEMBER = b"PK\x01\x02"  # begins each entry of the directory
_MOST_HEAD = 16 << 10  # bytes of an .npy file before its elements
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_LENGTHS = {(1, 0): 2, (2, 0): 4}  # bytes of the length of a header
# A header as numpy writes it of an array without fields. Others reach no parser: it fails in many ways.
_ENTRY = (
    rb"""(?:['"]descr['"]\s*:\s*['"][<>|=]?\w{1,16}(?:\[\w{1,8}\])?['"]"""
    rb"""|['"]fortran_order['"]\s*:\s*(?:True|False)|['"]shape['"]\s*:\s*\([\dL, ]{0,1500}\))"""
)
_HEADER = re.compile(rb"\{\s*" + _ENTRY + rb"(?:\s*,\s*" + _ENTRY + rb"){2}\s*(?:,\s*)?\}\s*")
_KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what numpy writes
_NO_ARCHIVE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError),
    *(ValueError, OverflowError),  # of offsets below zero, or above all integers
)


class Head(NamedTuple):
    """What an .npy file says before its elements, in `head_bytes`."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype
    head_bytes: int

    @property
    def element_bytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize


def head_in(data: Buffer, size: int, source: str) -> Head:
    """Return the head of an .npy file of `size` bytes, of which `data` has all or the first.

    Raises CoreError(INVALID), also if its elements have other bytes than the head says.
    """
    file = io.BytesIO(memoryview(data)[:_MOST_HEAD])
    try:
        version = npy.read_magic(file)
        if version not in _READERS:
            raise ValueError(
                f"version {version[0]}.{version[1]} of the format; expected 1.0 or 2.0"
            )
        header = file.read(int.from_bytes(file.read(_LENGTHS[version]), "little"))
        if not _HEADER.fullmatch(header):
            raise ValueError(
                f"its header is {header[:64]!r}; expected the one that numpy writes of an array of plain "
                "elements"
            )
        file.seek(npy.MAGIC_LEN)
        shape, is_fortran, dtype = _READERS[version](file)
    except (ValueError, TypeError, SyntaxError, OverflowError) as error:
        raise _wrong(source, ".npy", error) from None
    if dtype.hasobject:
        raise _wrong(source, ".npy", "its elements are Python objects")
    if not dtype.itemsize:
        raise _wrong(source, ".npy", "its elements have no bytes")
    head = Head(shape, is_fortran, dtype, file.tell())
    if head.element_bytes != size - head.head_bytes:
        found = f"{size - head.head_bytes} bytes of elements; expected {math.prod(shape)} of "
        raise _wrong(source, ".npy", f"{found}{dtype.itemsize} bytes")
    return head


def array_in(data: Buffer, source: str) -> np.ndarray:
    """Return the array in an .npy file, as a view of it. Raises CoreError(INVALID) if it is none."""
    view = memoryview(data)
    head = head_in(view, view.nbytes, source)
    left = view[head.head_bytes :]
    try:
        if not left.nbytes:
            return np.empty(head.shape, head.dtype)
        flat = np.frombuffer(left, head.dtype)
        return flat.reshape(head.shape, order="F" if head.is_fortran else "C")
    except (ValueError, OverflowError) as error:  # too many dimensions, or too long ones
        raise _wrong(source, ".npy", error) from None


def heads_in(data: Buffer, source: str) -> dict[str, Head]:
    """Return name → head of the arrays in an .npz file, without unpacking their elements.

    Raises CoreError(INVALID) if it is no such file.
    """
    found = {}
    with _opened(data, source) as archive:
        for each in archive.infolist():
            name = each.filename.removesuffix(".npy")
            first = _unpacked(archive, each, source, _MOST_HEAD)
            found[name] = head_in(first, each.file_size, f"{source}:{name}")
    return found


def expanded_bytes(data: Buffer, source: str) -> int:
    """Return the bytes of the arrays in an .npz file when they are unpacked, without unpacking them.

    Raises CoreError(INVALID) if it is no such file.
    """
    with _opened(data, source) as archive:
        return sum(each.file_size for each in archive.infolist())


def arrays_in(data: Buffer, source: str) -> dict[str, np.ndarray]:
    """Return name → array of an .npz file. It takes `expanded_bytes`.

    Raises CoreError(INVALID) if it is no such file.
    """
    found = {}
    with _opened(data, source) as archive:
        for each in archive.infolist():
            name = each.filename.removesuffix(".npy")
            found[name] = array_in(_unpacked(archive, each, source), f"{source}:{name}")
    return found


def _opened(data: Buffer, source: str) -> zipfile.ZipFile:
    content = bytes(data)
    if (members := content.count(_MEMBER)) > _MOST_MEMBERS:  # ZipFile makes an object of each
        why = f"it has {members} members; at most {_MOST_MEMBERS} are accepted"
        raise _wrong(source, ".npz", why)
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except _NO_ARCHIVE as error:
        raise _wrong(source, ".npz", error) from None
    names = set()
    for each in archive.infolist():
        if each.compress_type not in _KNOWN:
            raise _wrong(source, ".npz", "it is packed in another way than numpy does")
        if not each.filename.endswith(".npy"):
            raise _wrong(source, ".npz", f"its member '{each.filename[:64]}' is no array")
        if each.filename in names:
            raise _wrong(source, ".npz", f"it has two members '{each.filename[:64]}'")
        names.add(each.filename)
    return archive


def _unpacked(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, source: str, most: int | None = None
) -> bytes:
    """Return the bytes of a member, or the first `most`, and unpack no more than it declares."""
    size = member.file_size if most is None else min(most, member.file_size)
    try:
        with archive.open(member) as file:  # ZipFile.read may unpack a gigabyte before it compares
            found = file.read(size)
    except _NO_ARCHIVE as error:
        raise _wrong(source, ".npz", error) from None
    if len(found) != size:
        why = f"its member '{member.filename[:64]}' has {len(found)} bytes; expected {member.file_size}"
        raise _wrong(source, ".npz", why)
    return found


def bytes_of_array(array: np.ndarray) -> bytes:
    """Return an .npy file with an array."""
    file = io.BytesIO()
    npy.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def bytes_of_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return an .npz file, not packed, with arrays."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", bytes_of_array(array))
    return file.getvalue()


def _wrong(source: str, form: str, why: object) -> CoreError:
    return invalid(f"'{source}' cannot be read as {form}: {why}")
