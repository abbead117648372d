import cython

from libc.stdint cimport int64_t

from core.request cimport InferenceRequest


@cython.final
cdef class ConnectionMemory:
    """What one connection holds of the memory of all connections.

    share    of its connection
    held     bytes that the fast path holds: bodies, tensors and answers
    """

    cdef object share
    cdef int64_t held
    cdef int64_t _taken  # of the share: what is held beyond a small amount

    cdef hold(self, int64_t size, str what)
    cdef release(self, int64_t size)
    cdef close(self)


cdef ConnectionMemory memory_of(share)

# Bytes of the tensors that were made for a request whose body has no bytes for them, such as those in JSON.
cdef int64_t made_for(InferenceRequest request, bint has_binary) except -1

# Bytes of an answer: one object, or a list of buffers.
cdef int64_t size_of(answer) except -1
