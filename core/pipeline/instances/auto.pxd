import cython

from core.batch cimport Batch
from core.pipeline.answers.delivery cimport BatchDelivery
from core.pipeline.instances.runner cimport ThreadRunner


cdef class AutoRunner(ThreadRunner):
    cdef public bint on_loop
    cdef long long _trial
    cdef long long _seen
    cdef long long _shortest_ns
    cdef long long _crossing_ns
    cdef long long _smoothed_ns
    cdef long long _short_ns
    cdef long long _given_ns

    cpdef run(self, BatchDelivery delivery)
    @cython.locals(batch=Batch)
    cpdef _ended(self, BatchDelivery delivery, error)
    cpdef _run_here(self, BatchDelivery delivery)
    cdef _learn_on_loop(self, long long took_ns)
    @cython.locals(first=cython.bint)
    cdef _learn_on_thread(self, long long took_ns, long long crossing_ns)
