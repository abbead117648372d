import cython

from core.pipeline.endpoint_table cimport EndpointTable
from core.pipeline.endpoint cimport ModelEndpoint as Endpoint
from core.request cimport InferenceRequest
from frontends.grpc.call cimport GrpcCall
from frontends.grpc.native.repeated cimport MessageReader


cdef class Inbound:
    cdef object _regions
    cdef EndpointTable _endpoints
    cdef object _forwarded
    cdef MessageReader _reader

    cpdef read(self, bytes data, GrpcCall call)
    @cython.locals(request=InferenceRequest)
    cpdef Endpoint endpoint(self, asked)
    cpdef request(self, asked, signature, GrpcCall call)
