import cython

from core.native.clock cimport Clock
from core.native.distribution cimport Histogram, QuantileSketch
from core.telemetry.statistics cimport Statistics


@cython.final
cdef class Phase:
    cdef readonly Histogram histogram
    cdef readonly QuantileSketch spread

    cdef observe(self, long long ns)


cdef class DetailedStatistics(Statistics):
    cdef readonly Phase request_phase
    cdef readonly Phase queue_phase
    cdef readonly Phase input_phase
    cdef readonly Phase infer_phase
    cdef readonly Phase output_phase
    cdef readonly Phase hit_phase
    cdef readonly Phase miss_phase
    cdef dict _phases
    cdef bint _streams
    cdef Clock _clock
    cdef bint _spreads
    cdef long long _turn_ns

    cpdef succeeded(
        self, long long rows, long long total_ns, long long queue_ns, long long input_ns,
        long long infer_ns, long long output_ns,
    )
    cpdef hit(self, long long lookup_ns, long long queue_ns, long long total_ns)
    cpdef missed(self, long long cache_ns)
    @cython.locals(now_ns=cython.longlong, phase=Phase)
    cpdef grow_old(self)
