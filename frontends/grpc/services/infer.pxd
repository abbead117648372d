import cython

from core.config.signature cimport Signature
from core.pipeline.intake cimport Door
from core.request cimport InferenceRequest
from core.response cimport InferenceResponse, Listener, Reply
from frontends.grpc.call cimport Call
from frontends.grpc.intake cimport Intake
from frontends.grpc.native.infer_codec cimport response as encoded
from frontends.grpc.services.inbound cimport Inbound


cdef class InferService:
    cdef object _models
    cdef object _tracing
    cdef Inbound _inbound
    cdef Intake _intake

    @cython.locals(answer=Answer, reply=Reply)
    cpdef begin(self, data, Call call, done)
    @cython.locals(request=InferenceRequest, start_ns=cython.longlong, read_ns=cython.longlong,
                   door=Door, signature=Signature, reply=Reply)
    cdef Answer _ask(self, data, Call call, done)


cdef class Answer(Listener):
    cdef public Reply reply
    cdef Intake _intake
    cdef object _done
    cdef list _earlier

    cpdef bint waits(self)
    cdef tell(self, item, bint final)
    cpdef cancel(self)
    cdef _only(self)
    cpdef _rendered(self, InferenceResponse response)
    cpdef _pass(self, outcome)


@cython.locals(answer=Answer)
cdef Answer made_answer(Reply reply, Intake intake, done)


cdef class TracedAnswer(Answer):
    cdef object _trace
