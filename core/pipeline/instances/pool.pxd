import cython

from core.pipeline.answers.context cimport DeliveryContext
from core.pipeline.answers.delivery cimport BatchDelivery, new_delivery
from core.pipeline.instances.runner cimport RunnerOwner, InstanceRunner


cdef class Pool(RunnerOwner):
    cdef public list runners
    cdef public list passive
    cdef public object broken
    cdef object _on_idle
    cdef DeliveryContext _context
    cdef list _idle
    cdef bint _unready
    cdef list _aside
    cdef object _limiter
    cdef dict _trials
    cdef dict _retiring

    cpdef InstanceRunner claim(self, InstanceRunner runner=*)
    cpdef run(self, list waiting, InstanceRunner runner)
    cpdef became_idle(self, InstanceRunner runner, BatchDelivery delivery)
