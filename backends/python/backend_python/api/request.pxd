import cython

from backend_python.api.tensor cimport Tensor


cdef class InferenceRequest:
    cdef object __weakref__
    cdef public object _host
    cdef public object _batch
    cdef public Py_ssize_t _index
    cdef public list _inputs
    cdef public frozenset _outputs
    cdef public bint _decoupled
    cdef public object _sender
    cdef public int _release_flags
    cdef public str _request_id
    cdef public object _correlation_id
    cdef public object _flags
    cdef public object _timeout
    cdef public str _parameters
    cdef public object _trace
    cdef public object model_name
    cdef public object model_version
    cdef public object preferred_memory

    cdef _begin(self, decoupled, blocking)


@cython.locals(request=InferenceRequest)
cpdef InferenceRequest received(host, batch, Py_ssize_t index, list inputs, frozenset outputs, bint decoupled)
@cython.locals(requests=list, index=cython.Py_ssize_t)
cpdef list all_received(host, batch, list inputs, frozenset outputs, bint decoupled)
