import cython

from core.batch cimport Batch
from core.pipeline.answers.delivery cimport BatchDelivery
from core.pipeline.instances.runner cimport InlineRunner


cdef class CallbackRunner(InlineRunner):
    cdef bint _limited
    cdef Py_ssize_t _running
    cdef bint _is_idle
    cdef long long _last_end_ns

    cpdef run(self, BatchDelivery delivery)
    @cython.locals(batch=Batch)
    cpdef _done(self, BatchDelivery delivery, error)
    cdef _report_idle(self, BatchDelivery delivery)
