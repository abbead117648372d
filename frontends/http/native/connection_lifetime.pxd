from frontends.http.native.aiohttp_fallback cimport AiohttpFallback
from frontends.http.native.body_reader cimport BodyReader

cdef enum:
    UNKNOWN = -1


cdef class ConnectionLifetime(BodyReader):
    """The part of a FastConnection that closes the connection: if it is idle for too long, if a request is
    too slow, after a refusal, or because the server stops. Loop thread only.

    Received bytes are in one place at a time: `_pending` (not parsed yet, or the beginning of a head),
    `_body` (of the request that is being received), the fallback, or a pending response.
    """

    cdef bytes _pending
    cdef int _going_on  # _pending waits until at most so many responses are pending; UNKNOWN: no wait
    cdef bint _reading_paused
    cdef AiohttpFallback _fallback
    cdef object _timer
    cdef bint _lingering

    cdef _linger(self)
    cdef _watch(self, double seconds)
