# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Copies many buffers into one; large copies release the GIL."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

# Below this size the copy is faster than releasing and taking the GIL.
cdef enum:
    WITHOUT_GIL_FROM = 65536


cdef class _Sources:
    """Buffers of Python objects: acquired once by `take`, released when this object is freed."""

    cdef Py_buffer* views
    cdef Py_ssize_t held

    def __dealloc__(self):
        for i in range(self.held):
            PyBuffer_Release(&self.views[i])
        free(self.views)

    cdef Py_ssize_t take(self, list parts, Py_ssize_t alignment) except -1:
        """Acquire the buffers of `parts`; return their total size, gaps included. Call it once."""
        cdef Py_ssize_t total = 0
        self.views = <Py_buffer*>malloc(max(len(parts), 1) * sizeof(Py_buffer))
        if self.views == NULL:
            raise MemoryError()
        for part in parts:
            PyObject_GetBuffer(part, &self.views[self.held], PyBUF_SIMPLE)
            total = _up(total, alignment) + self.views[self.held].len
            self.held += 1
        return total

    cdef copy(self, char* to, Py_ssize_t total, Py_ssize_t alignment):
        if total >= WITHOUT_GIL_FROM:
            with nogil:
                _copy(self.views, self.held, to, alignment)
        else:
            _copy(self.views, self.held, to, alignment)


def gather(list parts, out, Py_ssize_t offset=0, Py_ssize_t alignment=1):
    """Copy `parts` into `out`, aligned from `offset` on; return the size. ValueError if they do not fit."""
    cdef _Sources sources = _Sources.__new__(_Sources)
    cdef Py_buffer target
    cdef Py_ssize_t total
    if alignment < 1:
        raise ValueError(f"gather: alignment {alignment}")
    total = sources.take(parts, alignment)
    PyObject_GetBuffer(out, &target, PyBUF_SIMPLE | PyBUF_WRITABLE)
    try:
        if offset < 0 or offset > target.len or total > target.len - offset:
            raise ValueError(
                f"gather: {total} bytes at offset {offset} do not fit into {target.len} bytes"
            )
        sources.copy(<char*>target.buf + offset, total, alignment)
    finally:
        PyBuffer_Release(&target)
    return total


def joined(list parts):
    """Return a copy of `parts`, one after another, as one bytes object."""
    cdef _Sources sources = _Sources.__new__(_Sources)
    cdef Py_ssize_t total = sources.take(parts, 1)
    cdef bytes found = PyBytes_FromStringAndSize(NULL, total)
    sources.copy(PyBytes_AS_STRING(found), total, 1)
    return found


cdef void _copy(Py_buffer* sources, Py_ssize_t n, char* to, Py_ssize_t alignment) noexcept nogil:
    cdef Py_ssize_t i, at = 0
    for i in range(n):
        at = _up(at, alignment)
        memcpy(to + at, sources[i].buf, sources[i].len)
        at += sources[i].len


cdef inline Py_ssize_t _up(Py_ssize_t size, Py_ssize_t alignment) noexcept nogil:
    """Return the smallest multiple of the alignment that is at least `size`."""
    return size + (alignment - size % alignment) % alignment
