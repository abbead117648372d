# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""The wire form of BYTES tensors: for each element a little-endian uint32 length, then its bytes."""

import numpy as np

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy


cdef inline uint32_t _length(const uint8_t* at) noexcept nogil:
    return at[0] | (<uint32_t>at[1] << 8) | (<uint32_t>at[2] << 16) | (<uint32_t>at[3] << 24)


def count(data):
    """Return (number of complete elements in `data`, number of bytes after them)."""
    cdef Py_buffer view
    cdef Py_ssize_t at = 0, found = 0
    cdef const uint8_t* base
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        base = <const uint8_t*>view.buf
        with nogil:
            while view.len - at >= 4:
                if <Py_ssize_t>_length(base + at) > view.len - at - 4:
                    break
                at += 4 + <Py_ssize_t>_length(base + at)
                found += 1
        return found, view.len - at
    finally:
        PyBuffer_Release(&view)


def decode(data, Py_ssize_t n):
    """Return the elements of `data` as object[n] of `bytes`. Raise ValueError unless it has exactly `n`."""
    cdef Py_buffer view
    cdef Py_ssize_t at = 0, i
    cdef const uint8_t* base
    array = np.empty(n, dtype=object)
    cdef object[::1] items = array
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        base = <const uint8_t*>view.buf
        for i in range(n):
            if view.len - at < 4 or <Py_ssize_t>_length(base + at) > view.len - at - 4:
                raise ValueError(f"BYTES tensor of {view.len} bytes ends within element {i} of {n}")
            items[i] = PyBytes_FromStringAndSize(<const char*>base + at + 4, _length(base + at))
            at += 4 + <Py_ssize_t>_length(base + at)
        if at != view.len:
            raise ValueError(f"BYTES tensor has {view.len - at} bytes after its {n} elements")
        return array
    finally:
        PyBuffer_Release(&view)


def encode(array):
    """Return the wire form of an array, row-major: `bytes`, `str` as UTF-8, other elements as text."""
    cdef list items = np.ascontiguousarray(array).ravel().tolist()
    cdef Py_ssize_t i, total = 0, n = len(items)
    cdef char* to
    cdef uint32_t length
    for i in range(n):
        item = items[i]
        if type(item) is not bytes:
            item = _as_bytes(item)
            items[i] = item
        if PyBytes_GET_SIZE(item) > 0xffffffff:
            raise ValueError(f"BYTES element {i} has {len(item)} bytes; 4294967295 is the most")
        total += 4 + PyBytes_GET_SIZE(item)
    out = PyBytes_FromStringAndSize(NULL, total)
    to = PyBytes_AS_STRING(out)
    for i in range(n):
        item = items[i]
        length = <uint32_t>PyBytes_GET_SIZE(item)
        to[0] = length & 0xff
        to[1] = (length >> 8) & 0xff
        to[2] = (length >> 16) & 0xff
        to[3] = (length >> 24) & 0xff
        memcpy(to + 4, PyBytes_AS_STRING(item), length)
        to += 4 + length
    return out


cdef bytes _as_bytes(item):
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item)
    # As tritonclient writes numbers in an object array.
    return str(item).encode()
