import cython

from core.batch cimport Batch
from core.pipeline.answers.delivery cimport BatchDelivery, Held


cdef class Owner:
    cpdef became_idle(self, Worker worker, BatchDelivery delivery)


cdef class Worker:
    cdef public object instance
    cdef public object broken
    cdef public object seat
    cdef public bint leaves
    cdef readonly Held held
    cdef readonly bint streams
    cdef public bint on_device
    cdef object _execute
    cdef bint _breaks_off
    cdef object _loop
    cdef Owner _owner

    cpdef run(self, BatchDelivery delivery)
    @cython.locals(batch=Batch)
    cpdef execute(self, BatchDelivery delivery)
    cpdef _ended(self, BatchDelivery delivery, error)


cdef class ThreadWorker(Worker):
    cdef object _relay
    cdef object _thread


cdef class InlineWorker(Worker):
    pass


cdef class LoopWorker(InlineWorker):
    cdef object _task
