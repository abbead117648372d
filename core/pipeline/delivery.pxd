from core.batch cimport Batch
from core.pipeline.queue cimport Waiting
from core.request cimport InferenceRequest
from core.response cimport InferenceResponse
from core.telemetry.statistics cimport Statistics


cdef class BatchDelivery:
    cdef public object clock_ns
    cdef public Batch batch
    cdef list _waiting
    cdef object _signature
    cdef Statistics _statistics
    cdef object _loop
    cdef object _on_final
    cdef object _put_back
    cdef list _rescheduled
    cdef object _items
    cdef list _answered
    cdef set _deferred
    cdef bint _holding
    cdef bint _scheduled
    cdef Py_ssize_t _left
    cdef bint _released

    cdef _respond(self, Py_ssize_t i, list tensors, parameters, bint final)
    cdef _answer(self, Py_ssize_t i, list tensors)
    cdef _put(self, Py_ssize_t i, item, bint final, bint failure)
    cpdef executed(self, outputs, error)
    cpdef release(self)
    cpdef _hand_over(self)
    cdef _let_go(self)
    cdef _count(self, Py_ssize_t i, bint failure)
