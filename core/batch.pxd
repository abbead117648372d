from core.request cimport InferenceRequest


cdef class Batch:
    cdef public list requests
    cdef public object signature
    cdef public object delivery
    cdef public long long rows
    cdef dict _gathered
    cdef public long long start_ns
    cdef public long long compute_start_ns
    cdef public long long compute_end_ns
    cdef public long long end_ns
