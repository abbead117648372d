import cython

from frontends.http.native.connection_lifetime cimport ConnectionLifetime
from frontends.http.native.listener_context cimport Head
from frontends.http.native.request_head cimport RequestHead


@cython.final
cdef class FastConnection(ConnectionLifetime):
    cdef bint _is_encrypted
    cdef RequestHead _request_head  # of the last head for inference
    cdef bint _repeats  # the last head was the one before it
    cdef str _client  # for the access log, if there is one

    cdef _process(self, bytes data)
    cdef bint _takes_known(self, const char* data, Py_ssize_t size) except -1
    cdef bint _takes_new(self, bytes data, Py_ssize_t at, const Head* head) except -1
    cdef Py_ssize_t _begin(self, bytes data, Py_ssize_t begin) except -1
    cdef _use_fallback(self)
    cdef _set_reading(self)
