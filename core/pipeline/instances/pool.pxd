import cython

from core.pipeline.answers.delivery cimport BatchDelivery, Terms, made_delivery
from core.pipeline.instances.worker cimport Owner, Worker


cdef class Pool(Owner):
    cdef public list workers
    cdef public list passive
    cdef public object broken
    cdef public object on_idle
    cdef Terms _terms
    cdef list _idle
    cdef bint _unready
    cdef list _aside
    cdef object _limiter
    cdef dict _turns
    cdef dict _trials
    cdef dict _retiring

    cpdef Worker claim(self, Worker worker=*)
    cpdef run(self, list waiting, Worker worker)
    cpdef became_idle(self, Worker worker, BatchDelivery delivery)
