import cython

from core.pipeline.doors cimport Doors
from core.pipeline.intake cimport Door as ModelDoor
from core.request cimport InferenceRequest
from frontends.grpc.call cimport GrpcCall
from frontends.grpc.native.repeated cimport MessageReader


cdef class Inbound:
    cdef object _server
    cdef Doors _doors
    cdef object _forwarded
    cdef MessageReader _reader

    cpdef read(self, bytes data, GrpcCall call)
    @cython.locals(request=InferenceRequest)
    cpdef ModelDoor door(self, asked)
    cpdef request(self, asked, signature, GrpcCall call)
