import cython

from core.request cimport InferenceRequest
from core.response cimport Reply


cdef long long _PUT_BACK


@cython.final
cdef class QueuedRequest:
    cdef public InferenceRequest request
    cdef public Reply reply
    cdef public object key
    cdef public int level
    cdef public long long expiry_ns
    cdef public bint counts
    cdef public object ended
    cdef public object keep
    cdef public bint taken
    cdef public bint begun


@cython.locals(waiting=QueuedRequest)
cpdef QueuedRequest new_queued_request(InferenceRequest request, Reply reply, key)


@cython.final
cdef class RequestQueue:
    cdef object _levels
    cdef int _default_level
    cdef dict _policies
    cdef dict _waiting
    cdef dict _delayed
    cdef dict _counts
    cdef Py_ssize_t _count
    cdef readonly bint timed
    cdef bint _is_sorted  # whether requests that wait expire in the order of their lines
    cdef bint _simple
    cdef object _line

    cpdef Py_ssize_t ahead_of(self, InferenceRequest request) except -1
    cdef int _level(self, InferenceRequest request) except -1
    cpdef bint waits(self)
    cpdef push(self, QueuedRequest waiting)
    cpdef put_back(self, QueuedRequest waiting)
    @cython.locals(request=InferenceRequest)
    cdef _enter(self, QueuedRequest waiting, int level)
    cpdef bint remove(self, QueuedRequest waiting)
    cpdef take(self, list chosen)
    @cython.locals(waiting=QueuedRequest, whole=cython.bint)
    cdef _take_from_line(self, list chosen)
    cpdef list front(self, Py_ssize_t most)
    cpdef list expire(self, long long now_ns)
    @cython.locals(level=int, waiting=QueuedRequest, expiry_ns=cython.longlong, next_ns=cython.longlong)
    cpdef long long next_expiry_ns(self)
    @cython.locals(waiting=QueuedRequest)
    cdef list _late(self, int level, long long now_ns)
    cdef _leave(self, QueuedRequest waiting)
