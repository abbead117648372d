import cython

from core.request cimport InferenceRequest


@cython.final
cdef class InferenceResponse:
    cdef public str model_name
    cdef public object model_version
    cdef public str id
    cdef public list outputs
    cdef public dict parameters


@cython.locals(response=InferenceResponse)
cpdef InferenceResponse made_response(
    str model_name, model_version, list outputs, str id, parameters
)


@cython.final
cdef class Reply:
    cdef public InferenceRequest request
    cdef object _items
    cdef object _listener
    cdef bint _finished

    cpdef send(self, item, bint final=*)
    cpdef fail(self, error)
    @cython.locals(reply=Reply)
    cpdef listen(self, listener)
    cpdef cancel(self)
