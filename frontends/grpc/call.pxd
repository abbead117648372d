import cython


@cython.final
cdef class GrpcCall:
    cdef object _metadata
    cdef object _source
    cdef public long long deadline_ns
    cdef public bint cancelled
    cdef public object active
    cdef public object observation
    cdef public long long bytes_out
    cdef list _listeners

    cpdef sent(self, message)
    cpdef end(self, int code, str text=*)
    cpdef on_cancel(self, listener)
    cpdef cancel(self)


@cython.locals(call=GrpcCall)
cpdef GrpcCall new_call(source, long long deadline_ns)
