# cython: freethreading_compatible=True, boundscheck=False, wraparound=False, cdivision=True
"""Distributions of durations: a histogram and a sketch of quantiles, with few instructions per duration."""

cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.string cimport memset

import math

cdef extern from *:
    """
    static int highest_bit(unsigned long long value) { return 63 - __builtin_clzll(value); }
    """
    int highest_bit(unsigned long long value) noexcept nogil

# A cell of a QuantileSketch is 64 ns wide up to 4 us, and from there on a 64th of the power of two below it.
cdef enum:
    UNIT_BITS = 6
    SPLIT_BITS = 6
    SPLIT = 64
    TOP_BITS = 36  # longer than 2 ** 42 ns, over an hour, is counted in the last cell
    CELLS = (TOP_BITS - SPLIT_BITS + 1) * SPLIT


cdef int cell_of(long long ns) noexcept nogil:
    cdef unsigned long long units = (<unsigned long long>ns if ns > 0 else 0) >> UNIT_BITS
    cdef int shift
    if units < SPLIT:
        return <int>units
    if units >> TOP_BITS:
        return CELLS - 1
    shift = highest_bit(units) - SPLIT_BITS
    return shift * SPLIT + <int>(units >> shift)


cpdef double middle_of(int cell) noexcept:
    """Return the middle of a cell of a QuantileSketch, in nanoseconds."""
    cdef int shift
    if cell < SPLIT:
        return (cell + 0.5) * (1 << UNIT_BITS)
    shift = cell // SPLIT - 1
    return (<double>(cell - shift * SPLIT) + 0.5) * <double>(1ULL << (shift + UNIT_BITS))


@cython.final
cdef class Histogram:
    """Histogram of durations. Not thread-safe: call from the event loop only."""

    def __cinit__(self, bounds, long long unit_ns):
        self.bounds = tuple([float(bound) for bound in bounds])
        self.unit_ns = unit_ns
        self.sum_ns = 0
        self._size = len(self.bounds)
        self._bounds = <long long *>PyMem_Malloc((self._size + 1) * sizeof(long long))
        self._counts = <unsigned long long *>PyMem_Calloc(
            self._size + 1, sizeof(unsigned long long)
        )
        if self._bounds is NULL or self._counts is NULL:
            raise MemoryError()
        most = 2.0**62  # 146 years
        for place, bound in enumerate(self.bounds):
            # Whole nanoseconds below or at the bound: durations are whole, too.
            self._bounds[place] = math.floor(min(max(bound * unit_ns, -most), most))

    def __dealloc__(self):
        PyMem_Free(self._bounds)
        PyMem_Free(self._counts)

    cpdef void observe(self, long long ns) noexcept:
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = self._size
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high) >> 1
            if self._bounds[middle] < ns:
                low = middle + 1
            else:
                high = middle
        self._counts[low] += 1
        self.sum_ns += ns

    def counts(self):
        """Return the count of each bucket, not cumulated; the last bucket has no bound."""
        return [self._counts[place] for place in range(self._size + 1)]


@cython.final
cdef class QuantileSketch:
    """Sketch of recent durations that gives any quantile within 1 %. Not thread-safe."""

    def __cinit__(self):
        cdef int age
        self.count = 0
        self.sum_ns = 0
        self._age = 0
        for age in range(AGES):
            self._cells[age] = NULL
            self._counted[age] = 0

    def __dealloc__(self):
        cdef int age
        for age in range(AGES):
            PyMem_Free(self._cells[age])

    cpdef int observe(self, long long ns) except -1:
        cdef int age = self._age
        cdef unsigned int *cells = self._cells[age]
        if cells is NULL:
            cells = <unsigned int *>PyMem_Calloc(CELLS, sizeof(unsigned int))
            if cells is NULL:
                raise MemoryError()
            self._cells[age] = cells
        if not self._counted[age]:
            self._lowest[age] = self._highest[age] = ns
        elif ns < self._lowest[age]:
            self._lowest[age] = ns
        elif ns > self._highest[age]:
            self._highest[age] = ns
        self._counted[age] += 1
        cells[cell_of(ns)] += 1
        self.count += 1
        self.sum_ns += ns
        return 0

    cpdef void turn(self) noexcept:
        """Begin a new period, and drop the oldest one."""
        self._age = (self._age + 1) % AGES
        if self._counted[self._age]:
            memset(self._cells[self._age], 0, CELLS * sizeof(unsigned int))
            self._counted[self._age] = 0

    def recent(self):
        """Return (shortest, longest recent duration in ns, cell → count); (0, 0, {}) without durations."""
        cdef int age, cell
        cdef long long lowest = 0, highest = 0
        cdef unsigned long long total = 0, found
        for age in range(AGES):
            if self._counted[age]:
                if not total or self._lowest[age] < lowest:
                    lowest = self._lowest[age]
                if not total or self._highest[age] > highest:
                    highest = self._highest[age]
                total += self._counted[age]
        cells = {}
        if total:
            for cell in range(CELLS):
                found = 0
                for age in range(AGES):
                    if self._counted[age]:
                        found += self._cells[age][cell]
                if found:
                    cells[cell] = found
        return lowest, highest, cells
