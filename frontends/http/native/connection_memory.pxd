import cython

from libc.stdint cimport int64_t

from core.request cimport InferenceRequest


@cython.final
cdef class ConnectionMemory:
    """Counts the bytes that one connection holds; beyond UNCOUNTED they are taken from the memory account.

    share    share of the connection in the memory account
    held     bytes that the fast path holds: bodies, tensors and responses
    """

    cdef object share
    cdef int64_t held
    cdef int64_t _taken  # bytes taken from the share: those held beyond UNCOUNTED

    cdef hold(self, int64_t size, str what)
    cdef release(self, int64_t size)
    cdef close(self)


cdef ConnectionMemory memory_of(share)

# Return the size in bytes of the tensors that own their bytes, such as those in JSON; not of views of the
# body. has_binary: whether tensors may be views of the body.
cdef int64_t made_for(InferenceRequest request, bint has_binary) except -1

# Return the size in bytes of a response: bytes, or a list of buffers.
cdef int64_t size_of(answer) except -1
