import cython

from frontends.http.native.body_reader cimport BodyReader
from frontends.http.native.aiohttp_fallback cimport AiohttpFallback
from frontends.http.native.listener_context cimport Head
from frontends.http.native.request_head cimport RequestHead


@cython.final
cdef class FastConnection(BodyReader):
    """One connection; see fast_connection.pyi.

    Bytes are in one place at a time: `_pending` (not looked at, or the beginning of a head), `_body`
    (of the request that is being received), with the fallback, or in a pending.
    """

    cdef bint _is_encrypted
    cdef object _timer

    # in
    cdef bytes _pending
    cdef RequestHead _request_head  # of the last head for inference
    cdef int _going_on  # _pending waits until there are no more pending responses than this; UNKNOWN: it does not
    cdef bint _reading_paused
    cdef bint _repeats  # the last head was the one before it

    cdef AiohttpFallback _fallback

    # the end
    cdef bint _lingering

    # for the access log, if there is one
    cdef str _client

    cdef _process(self, bytes data)
    cdef bint _takes_known(self, const char* data, Py_ssize_t size) except -1
    cdef bint _takes_new(self, bytes data, Py_ssize_t at, const Head* head) except -1
    cdef Py_ssize_t _begin(self, bytes data, Py_ssize_t begin) except -1
    cdef bytes _leave_receiver(self)
    cdef _use_fallback(self)
    cdef _set_reading(self)
    cdef _linger(self)
    cdef _watch(self, double seconds)
