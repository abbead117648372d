import cython

from core.native.clock cimport wall_ms
from core.native.distribution cimport Histogram


@cython.final
cdef class Duration:
    cdef public unsigned long long count
    cdef public unsigned long long ns

    cpdef add(self, long long ns)


@cython.final
cdef class BatchSize:
    cdef public Duration compute_input
    cdef public Duration compute_infer
    cdef public Duration compute_output


cdef class Statistics:
    cdef public unsigned long long inference_count
    cdef public unsigned long long execution_count
    cdef public unsigned long long last_inference_ms
    cdef public Duration success
    cdef public Duration fail
    cdef public Duration queue
    cdef public Duration compute_input
    cdef public Duration compute_infer
    cdef public Duration compute_output
    cdef public Duration cache_hit
    cdef public Duration cache_miss
    cdef public dict failures
    cdef public dict batch_sizes
    cdef public Histogram first_response

    @cython.locals(size=BatchSize)
    cpdef executed(self, long long rows, long long input_ns, long long infer_ns, long long output_ns)
    cpdef succeeded(
        self, long long rows, long long total_ns, long long queue_ns, long long input_ns,
        long long infer_ns, long long output_ns,
    )
    cpdef failed(self, reason, long long total_ns)
    cpdef hit(self, long long lookup_ns, long long queue_ns, long long total_ns)
    cpdef missed(self, long long cache_ns)
