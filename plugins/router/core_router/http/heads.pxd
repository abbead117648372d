import cython

cdef dict _requests
cdef dict _responses


@cython.final
cdef class RequestHead:
    cdef readonly bytes method
    cdef readonly bytes target
    cdef readonly int minor
    cdef readonly long long body_size
    cdef readonly bint keep_alive
    cdef readonly bint expects
    cdef readonly bint upgrades
    cdef readonly long long json_size
    cdef readonly bytes passed_on
    cdef readonly bint is_same


@cython.final
cdef class ResponseHead:
    cdef readonly int status
    cdef readonly long long body_size
    cdef readonly bint keep_alive
    cdef readonly bytes passed_on
    cdef readonly bint is_same

    cpdef bytes closing(self)


cpdef RequestHead request_head(bytes raw)
cpdef ResponseHead response_head(bytes raw)
