import cython

from libc.stdint cimport int64_t


@cython.final
cdef class Framing:
    """Finds the ends of requests in the bytes of a connection.

    owed             bytes of the request that come next; UNKNOWN if only the engine knows its end
    at_blank_line    the last bytes end with one
    """

    cdef int64_t owed
    cdef bint at_blank_line
    cdef bytes _begun  # the beginning of a head
    cdef int _parts  # of the bytes that came last
    cdef bytes _part  # the last one of a request whose end only the engine knows, if it may be a head

    cpdef Py_ssize_t next_part(self, bytes data, Py_ssize_t at, bint idle) except -1
    cpdef bint drops_followers(self) except -1
    cdef bint is_at_start(self) noexcept
