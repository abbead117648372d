from frontends.http.native.aiohttp_fallback cimport AiohttpFallback
from frontends.http.native.body_reader cimport BodyReader

cdef enum:
    UNKNOWN = -1


cdef class ConnectionLifetime(BodyReader):
    """When one connection ends: idle for too long, too slow with a request, or because the server stops. Loop
    thread only.

    Bytes are in one place at a time: `_pending` (not looked at, or the beginning of a head), `_body`
    (of the request that is being received), with the fallback, or in a pending response.
    """

    cdef bytes _pending
    cdef int _going_on  # _pending waits until there are no more pending responses than this; UNKNOWN: it does not
    cdef bint _reading_paused
    cdef AiohttpFallback _fallback
    cdef object _timer
    cdef bint _lingering

    cdef _linger(self)
    cdef _watch(self, double seconds)
