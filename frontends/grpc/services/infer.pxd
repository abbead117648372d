import cython

from core.config.signature cimport Signature
from core.pipeline.endpoint cimport ModelEndpoint
from core.request cimport InferenceRequest
from core.response cimport InferenceResponse, ReplyListener, Reply
from frontends.grpc.call cimport GrpcCall
from frontends.grpc.requests_in_flight cimport RequestsInFlight
from frontends.grpc.native.infer_response cimport response as encoded
from frontends.grpc.services.inbound cimport Inbound


cdef class InferService:
    cdef object _models
    cdef object _tracing
    cdef Inbound _inbound
    cdef RequestsInFlight _intake

    @cython.locals(answer=UnaryResponse, reply=Reply)
    cpdef begin(self, data, GrpcCall call, done)
    @cython.locals(request=InferenceRequest, start_ns=cython.longlong, read_ns=cython.longlong,
                   endpoint=ModelEndpoint, signature=Signature, reply=Reply)
    cdef UnaryResponse _ask(self, data, GrpcCall call, done)


cdef class MeteredInferService(InferService):
    @cython.locals(request=InferenceRequest, start_ns=cython.longlong, read_ns=cython.longlong,
                   endpoint=ModelEndpoint, signature=Signature, reply=Reply)
    cdef UnaryResponse _ask(self, data, GrpcCall call, done)


cdef class UnaryResponse(ReplyListener):
    cdef public Reply reply
    cdef RequestsInFlight _intake
    cdef object _done
    cdef list _earlier

    cpdef bint waits(self)
    cdef receive(self, item, bint final)
    cpdef cancel(self)
    cdef _only(self)
    cpdef _rendered(self, InferenceResponse response)
    cpdef _pass(self, outcome)


@cython.locals(answer=UnaryResponse)
cdef UnaryResponse new_response(Reply reply, RequestsInFlight intake, done)


cdef class TracedUnaryResponse(UnaryResponse):
    cdef object _trace
