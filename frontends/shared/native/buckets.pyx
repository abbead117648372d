# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Buckets: counters of the limits of callers, in shared memory whose layout is in buckets.hpp."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint64_t

cdef extern from "buckets.hpp" namespace "core_buckets" nogil:
    cppclass Table:
        char* data
        size_t slots, workers, worker
        @staticmethod
        size_t stride(size_t workers)
        uint64_t inside(const Slot&)
        Slot& at(size_t)
        ptrdiff_t claim(size_t first, size_t count, uint64_t key, int64_t now)
        int64_t enter(size_t index, uint64_t key, uint64_t most)
        void leave(size_t index)
        int64_t take(size_t index, uint64_t key, int64_t interval, int64_t tolerance, int64_t now)
        void clear(size_t which)
    cppclass Slot:
        Key key
    cppclass Key "std::atomic<std::uint64_t>":
        uint64_t load()


def bytes_for(size_t slots, size_t workers):
    return slots * Table.stride(workers)


cdef class Buckets:
    """Counters of the limits of callers, in a buffer that this object holds. Methods raise ValueError for
    slots and workers that do not exist.
    """

    cdef Py_buffer _memory
    cdef bint _held
    cdef Table _table

    def __cinit__(self, memory, size_t slots, size_t workers, size_t worker):
        PyObject_GetBuffer(memory, &self._memory, PyBUF_SIMPLE | PyBUF_WRITABLE)
        self._held = True
        if <size_t>self._memory.len < slots * Table.stride(workers) or worker >= workers:
            raise ValueError("the memory of the buckets is too small, or there is no such worker")
        if <size_t>self._memory.buf % 8:
            raise ValueError("the memory of the buckets is not aligned to 8 bytes")
        self._table.data = <char*>self._memory.buf
        self._table.slots = slots
        self._table.workers = workers
        self._table.worker = worker

    def __dealloc__(self):
        if self._held:
            PyBuffer_Release(&self._memory)

    def claim(self, size_t first, size_t count, uint64_t key, int64_t now_ns):
        if not key or first + count > self._table.slots:
            raise ValueError("no such slots, or the key 0")
        return self._table.claim(first, count, key, now_ns)

    def enter(self, size_t slot, uint64_t key, uint64_t most):
        self._check(slot)
        return self._table.enter(slot, key, most)

    def leave(self, size_t slot):
        self._check(slot)
        self._table.leave(slot)

    def take(self, size_t slot, uint64_t key, int64_t interval_ns, int64_t tolerance_ns, int64_t now_ns):
        self._check(slot)
        return self._table.take(slot, key, interval_ns, tolerance_ns, now_ns)

    def inside(self, size_t slot):
        self._check(slot)
        return self._table.inside(self._table.at(slot))

    def key(self, size_t slot):
        self._check(slot)
        return self._table.at(slot).key.load()

    def clear(self, size_t worker):
        if worker >= self._table.workers:
            raise ValueError("there is no such worker")
        self._table.clear(worker)

    cdef _check(self, size_t slot):
        if slot >= self._table.slots:
            raise ValueError(f"slot {slot} of {self._table.slots}")
