import cython

from core.batch cimport Batch
from core.pipeline.answers.context cimport OutstandingBatches
from core.pipeline.answers.delivery cimport BatchDelivery


cdef class RunnerOwner:
    cpdef became_idle(self, InstanceRunner runner, BatchDelivery delivery)


cdef class InstanceRunner:
    cdef public object instance
    cdef public object broken
    cdef public object spec
    cdef public bint leaves
    cdef readonly OutstandingBatches outstanding
    cdef readonly bint streams
    cdef public bint on_device
    cdef object _execute
    cdef bint _cancellable
    cdef object _loop
    cdef RunnerOwner _owner

    cpdef run(self, BatchDelivery delivery)
    @cython.locals(batch=Batch)
    cpdef execute(self, BatchDelivery delivery)
    cpdef _ended(self, BatchDelivery delivery, error)


cdef class ThreadRunner(InstanceRunner):
    cdef object _queue
    cdef object _thread


cdef class InlineRunner(InstanceRunner):
    pass


cdef class LoopRunner(InlineRunner):
    cdef object _task
