from core.pipeline.pool cimport Pool
from core.pipeline.queue cimport RequestQueue, Waiting
from core.pipeline.scheduler cimport Scheduler
from core.request cimport InferenceRequest
from core.response cimport Reply


cdef class Batcher(Scheduler):
    cdef RequestQueue _queue
    cdef object _limits
    cdef object _key
    cdef Py_ssize_t _most
    cdef bint _alone
    cdef bint _pump_soon
