cimport cython
from libc.stdint cimport int32_t

from frontends.grpc.call cimport GrpcCall
from frontends.grpc.native.connection cimport Connection
from frontends.grpc.native.engine_context cimport MethodRoute
from frontends.grpc.native.session cimport Session


@cython.final
cdef class Handle:
    cdef Connection connection
    cdef int32_t id
    cdef MethodRoute route
    # call: what the method sees; worker: the task or the StreamRun of the method, None without one.
    # Both refer to this object, and are dropped at the end, so that no reference cycle remains.
    cdef GrpcCall call
    cdef object worker
    cdef readonly bint over

    cpdef answer(self, message, bint compressed)
    cpdef send(self, message, bint compressed)
    cpdef finish(self, int code, str text)
    cdef gone(self)
    cdef _report_load(self, Session* session, int code)
