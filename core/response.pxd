import cython

from core.request cimport InferenceRequest


@cython.final
cdef class InferenceResponse:
    cdef public str model_name
    cdef public object model_version
    cdef public str id
    cdef public list outputs
    cdef dict _parameters


@cython.locals(response=InferenceResponse)
cpdef InferenceResponse new_response(
    str model_name, model_version, list outputs, str id, parameters
)


cdef class ReplyListener:
    cdef receive(self, item, bint final)


@cython.final
cdef class Reply:
    cdef public InferenceRequest request
    cdef object _first
    cdef bint _waits
    cdef bint _first_is_final
    cdef object _more
    cdef object _listener
    cdef bint _heard
    cdef bint _finished

    cpdef send(self, item, bint final=*)
    cpdef fail(self, error)
    @cython.locals(reply=Reply, final=cython.bint)
    cpdef listen(self, listener)
    cpdef cancel(self)
    cpdef end(self, error)


@cython.locals(compiled=ReplyListener)
cdef _notify(listener, item, bint final)


@cython.locals(reply=Reply)
cpdef Reply new_reply(InferenceRequest request)
