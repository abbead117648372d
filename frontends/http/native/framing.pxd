import cython

from libc.stdint cimport int64_t


@cython.final
cdef class Framing:
    """Finds the ends of requests in the bytes of a connection.

    owed             bytes that the current request still needs; UNKNOWN if only aiohttp knows its end
    at_blank_line    the last part ends with a blank line
    """

    cdef int64_t owed
    cdef bint at_blank_line
    cdef bytes _begun  # the beginning of a head
    cdef int _parts  # number of parts of the current `data`
    cdef bytes _part  # the last part of a request whose end only aiohttp knows, if it may be a head

    cpdef Py_ssize_t next_part(self, bytes data, Py_ssize_t at, bint idle) except -1
    cpdef bint drops_followers(self) except -1
    cpdef bint is_at_start(self) noexcept
