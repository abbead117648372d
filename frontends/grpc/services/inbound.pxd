from core.request cimport InferenceRequest
from frontends.grpc.call cimport Call


cdef class Inbound:
    cdef object _server
    cdef object _forwarded
    cdef object _reader

    cpdef read(self, bytes data)
    cpdef signature(self, asked)
    cpdef request(self, asked, signature, Call call)
