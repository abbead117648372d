# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""ConnectionLifetime: the idle timeout and the end of a connection.

RequestTimeouts, Connections, timer ─► [ConnectionLifetime] ─► transport
"""

from cpython.bytes cimport PyBytes_GET_SIZE

from frontends.http.native.aiohttp_fallback cimport AiohttpFallback
from frontends.http.native.body_reader cimport BodyReader
from frontends.http.native.listener_context cimport ListenerContext
from frontends.http.native.now cimport now_s

from frontends.http.request_timeouts import TOO_SLOW, UnfinishedRequest

cdef double _LINGER_S = 10.0  # for a client that still sends a body while it receives its refusal


cdef class ConnectionLifetime(BodyReader):
    """The part of a FastConnection that closes it when it is idle, too slow, or refused."""

    def __init__(self, ListenerContext context):
        super().__init__(context)
        self._going_on = UNKNOWN
        self._fallback = AiohttpFallback.__new__(AiohttpFallback)

    # a client that is slow -----------------------------------------------------------

    @property
    def transport(self):
        return self._transport

    def unfinished(self):
        if self._fallback.here:
            return self._fallback.protocol.unfinished()
        if self._receiver is not None and self._receiver.there and not self._reading_paused:
            return UnfinishedRequest(self._receiver.in_body, self._used, self._receiver.there)
        if self._body is not None and not self._reading_paused:
            return UnfinishedRequest(True, self._used, self._received)
        if self._pending is not None and self._going_on == UNKNOWN and not self._queue.count:
            return UnfinishedRequest(False, self._used, PyBytes_GET_SIZE(self._pending))

    def give_up(self):
        if self._fallback.here:
            self._fallback.protocol.give_up()
        elif self._transport is not None:
            if not self._queue.count and not self._outgoing.waits:
                self._transport.write(TOO_SLOW)
            self._transport.close()

    # the end --------------------------------------------------------------------------

    def finish(self):
        """Close the connection after the responses to all begun requests; now, if there are none."""
        self._finishing = True
        if self._receiver is not None and not self._receiver.in_body:
            self._leave_receiver()  # drops an incomplete head
        if self._body is None and not self._fallback.here:
            self._pending = None
            self._going_on = UNKNOWN
        if self._lingering:
            self._transport.close()
        self._end_if_idle()

    cdef _end_if_idle(self):
        if self._transport is None or self._queue.count or self._ready or self._in_body():
            return
        if self._outgoing.waits:
            return
        if self._refusing:
            self._linger()
            return
        # A busy fallback closes the transport by itself when the server stops.
        if not self._fallback.here or not self._fallback.protocol.busy:
            self._transport.close()

    cdef _linger(self):
        """Close the sending side now, and the connection after _LINGER_S: with unread bytes, closing it now
        would reset it, and the client could lose the response.
        """
        if self._lingering:
            return
        self._lingering = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._context.loop.call_later(_LINGER_S, self.cut)

    cdef _watch(self, double seconds):
        self._timer = self._context.loop.call_later(seconds, self.look)

    def look(self):
        """Close the connection if it has been idle for `keep_alive_s` seconds; else set the timer again."""
        if self._transport is None:
            return
        cdef double limit = self._context.keep_alive_s, used = self._used
        if self._queue.count or self._in_body() or self._fallback.here and not self._fallback.protocol.idle:
            self._watch(limit)
            return
        if self._fallback.protocol is not None:
            used = max(used, self._fallback.protocol.used)
        used += limit - now_s()
        if used > 0:
            self._watch(used)
        else:
            self._transport.close()
