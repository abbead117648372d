# cython: boundscheck=False, wraparound=False
"""Mapping: a shared mapping of a file (mapping.hpp handles missing pages)."""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.errno cimport errno
from libcpp cimport bool as truth

import os

cdef extern from "<sys/mman.h>" nogil:
    enum: PROT_READ, PROT_WRITE, MAP_SHARED
    void* MAP_FAILED
    void* mmap(void*, size_t, int, int, int, long long)
    int munmap(void*, size_t)

cdef extern from "<atomic>" nogil:
    cppclass Flag "std::atomic<bool>":
        truth load()

cdef extern from "mapping.hpp" namespace "client_memory" nogil:
    cppclass Range:
        Flag lost
    Range* keep(void* data, size_t size)
    void release(Range* range)


cdef class Mapping:
    """Shared, writable mapping of a part of a file, with the buffer protocol. Raise OSError if mmap fails."""

    cdef void* _data
    cdef size_t _size
    cdef Range* _range

    def __cinit__(self, int file, long long offset, size_t byte_size):
        cdef void* found = mmap(NULL, byte_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset)
        if found == MAP_FAILED:
            raise OSError(errno, os.strerror(errno))
        self._data = found
        self._size = byte_size
        self._range = keep(found, byte_size)
        if self._range == NULL:
            raise MemoryError()

    def __dealloc__(self):
        if self._data != NULL:
            if self._range != NULL:
                release(self._range)
            munmap(self._data, self._size)

    @property
    def lost(self):
        return self._range.lost.load()

    @property
    def address(self):
        return <size_t>self._data

    def __len__(self):
        return <Py_ssize_t>self._size

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self._data, <Py_ssize_t>self._size, 0, flags)
