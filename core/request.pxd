import cython

cdef class RequestedOutput:
    cdef public str name
    cdef public object class_count
    cdef public object memory


cdef class InferenceRequest:
    cdef public str model_name
    cdef public long long model_version
    cdef public str id
    cdef public dict inputs
    cdef public object outputs
    cdef dict _parameters
    cdef public object correlation_id
    cdef public int flags
    cdef public int caller
    cdef public object priority
    cdef public object timeout_us
    cdef public long long deadline_ns
    cdef public object trace
    cdef public bint shared
    cdef public long long arrival_ns
    cdef public long long rows
    cdef public bint cancelled
    cdef object _on_cancel
    cdef public InferenceRequest parent
    cdef public bint paused
    cdef bint _over
    cdef list _when_free

    cdef _reset(self, str model_name, dict inputs)
    @cython.locals(request=InferenceRequest)
    cpdef InferenceRequest copy_with(self, dict inputs)
    cpdef bint has_only_inputs(self)
    cpdef bint placed(self, name)
    cpdef cancel(self)
    cpdef on_cancel(self, listener)
    cpdef off_cancel(self, listener)
    cpdef finish(self)
    cpdef pause(self)
    cpdef resume(self)
    cpdef when_free(self, listener)


@cython.locals(request=InferenceRequest)
cpdef InferenceRequest new_request(str model_name, dict inputs)
