# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Copy many buffers into one, without the GIL."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

# Below this the memcpy is shorter than releasing and taking the GIL again.
cdef enum:
    WITHOUT_GIL_FROM = 65536


def gather(list parts, out, Py_ssize_t offset=0, Py_ssize_t alignment=1):
    """Copy `parts` one after another into `out` from byte `offset` on; see gather.pyi."""
    cdef Py_ssize_t n = len(parts)
    cdef Py_buffer target
    cdef Py_buffer* sources = <Py_buffer*>malloc(max(n, 1) * sizeof(Py_buffer))
    cdef Py_ssize_t held = 0, total = 0, i
    cdef char* to
    if sources == NULL:
        raise MemoryError()
    if alignment < 1:
        raise ValueError(f"gather: alignment {alignment}")
    try:
        for i in range(n):
            PyObject_GetBuffer(parts[i], &sources[i], PyBUF_SIMPLE)
            held += 1
            total = _up(total, alignment) + sources[i].len
        PyObject_GetBuffer(out, &target, PyBUF_SIMPLE | PyBUF_WRITABLE)
        try:
            if offset < 0 or offset > target.len or total > target.len - offset:
                raise ValueError(
                    f"gather: {total} bytes at offset {offset} do not fit into {target.len} bytes"
                )
            to = <char*>target.buf + offset
            if total >= WITHOUT_GIL_FROM:
                with nogil:
                    _copy(sources, n, to, alignment)
            else:
                _copy(sources, n, to, alignment)
        finally:
            PyBuffer_Release(&target)
    finally:
        for i in range(held):
            PyBuffer_Release(&sources[i])
        free(sources)
    return total


cdef void _copy(Py_buffer* sources, Py_ssize_t n, char* to, Py_ssize_t alignment) noexcept nogil:
    cdef Py_ssize_t i, at = 0
    for i in range(n):
        at = _up(at, alignment)
        memcpy(to + at, sources[i].buf, sources[i].len)
        at += sources[i].len


cdef inline Py_ssize_t _up(Py_ssize_t size, Py_ssize_t alignment) noexcept nogil:
    """The next multiple."""
    return size + (alignment - size % alignment) % alignment
