"""Arrays in the bytes of .npy and .npz files, as strangers send them: nothing larger than the file says."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping

import numpy as np
from numpy.lib import format as npy

from core.errors import CoreError, invalid
from core.tensor import Buffer

_MOST_HEAD = 16 << 10  # bytes of an .npy file before its elements
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what numpy writes


def array_in(data: Buffer, source: str) -> np.ndarray:
    """Return the array in an .npy file, as a view of it. Raises CoreError(INVALID) if it is none."""
    view = memoryview(data)
    head = io.BytesIO(view[:_MOST_HEAD])
    try:
        version = npy.read_magic(head)
        if version not in _READERS:
            raise ValueError(
                f"version {version[0]}.{version[1]} of the format; expected 1.0 or 2.0"
            )
        shape, is_fortran, dtype = _READERS[version](head)
        if dtype.hasobject:
            raise ValueError("its elements are Python objects")
        count = math.prod(shape)
        left = view[head.tell() :]
        if min(shape, default=1) < 0 or count * dtype.itemsize != left.nbytes:
            raise ValueError(
                f"{left.nbytes} bytes of elements; expected {count} of {dtype.itemsize} bytes"
            )
        if not left.nbytes:
            return np.empty(shape, dtype)
        flat = np.frombuffer(left, dtype)
        return flat.reshape(shape, order="F" if is_fortran else "C")
    except (ValueError, TypeError, SyntaxError, RecursionError, EOFError) as error:
        raise _wrong(source, ".npy", error) from None


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
            if not each.filename.endswith(".npy"):
                raise _wrong(source, ".npz", f"its member '{each.filename[:64]}' is no array")
            try:
                plain = archive.read(each)
            except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError) as error:
                raise _wrong(source, ".npz", error) from None
            name = each.filename.removesuffix(".npy")
            found[name] = array_in(plain, f"{source}:{name}")
    return found


def _opened(data: Buffer, source: str) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
        raise _wrong(source, ".npz", error) from None
    if any(each.compress_type not in _KNOWN for each in archive.infolist()):
        raise _wrong(source, ".npz", "it is packed in another way than numpy does")
    return archive


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
