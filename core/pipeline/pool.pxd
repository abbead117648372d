from core.pipeline.worker cimport Worker


cdef class Pool:
    cdef public list workers
    cdef public object broken
    cdef public object on_idle
    cdef object _loop
    cdef object _deliver
    cdef object _idle
    cdef object _limiter
    cdef dict _turns

    cpdef Worker claim(self, Worker worker=*)
    cpdef run(self, list waiting, Worker worker)
