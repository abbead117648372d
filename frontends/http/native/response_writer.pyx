# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""How the answers of a connection leave; see response_writer.pxd.

PendingResponse ─► [ResponseWriter] ─► transport.  Answers leave in the order of their requests, all that are ready in one
write. What is large, or waits for the client, is counted (connection_memory.pyx) and given to the transport piece by piece.
"""

from cpython.bytes cimport PyBytes_GET_SIZE
from libc.stdint cimport int64_t

from core.request cimport InferenceRequest
from frontends.http.native.pending_response cimport ResponseSink, PendingResponse, ResponseQueue, write_all
from frontends.http.native.now cimport now_s
from frontends.http.native.outgoing cimport Outgoing
from frontends.http.native.listener_context cimport ListenerContext
from frontends.http.native.connection_memory cimport size_of

cdef enum:
    SMALL = 8 * 1024  # an answer up to this is not counted
    LARGE = 64 * 1024  # an answer above this is counted also if it can be sent at once


cdef class ResponseWriter(ResponseSink):
    """See response_writer.pxd."""

    def __init__(self, ListenerContext context):
        self._context = context
        self._queue = ResponseQueue.__new__(ResponseQueue)
        self._outgoing = Outgoing.__new__(Outgoing)
        self._ready = []

    # what a connection does ----------------------------------------------------------

    cdef _go_on(self):
        """Write what is ready and, if that made room, go on with what waits."""
        raise NotImplementedError

    cdef _end_if_idle(self):
        """Close the connection when nothing of it is left."""
        raise NotImplementedError

    cdef bint _in_body(self) except -1:
        """Whether a body is being received."""
        raise NotImplementedError

    # answers -------------------------------------------------------------------

    cdef settle(self, PendingResponse pending):
        """Count an answer that is large, or waits; one that there is no room for becomes an error."""
        cdef int64_t size
        if pending.held:
            self._memory.release(pending.held)
            pending.held = 0
        if type(pending.answer) is bytes:
            size = PyBytes_GET_SIZE(<bytes>pending.answer)
            if size <= SMALL:
                return
            if size <= LARGE and pending is self._queue.first and not self._writing_paused:
                return
        size = size_of(pending.answer)
        error = self._memory.hold(size, "the answer")
        if error is None:
            pending.held = size
            return
        sink, pending.sink, pending.answer = pending.sink, None, None
        pending.fail(error)
        pending.sink = sink

    cdef answered(self, PendingResponse pending):
        """A pending response of this connection has its answer."""
        if self._working or pending is not self._queue.first:
            return
        if pending.next is None:
            self._go_on()
        elif not self._turn_is_planned:
            # Others of this connection may end in this turn: one write for all.
            self._turn_is_planned = True
            self._context.loop.call_soon(self.turn)

    def turn(self):
        """The end of a turn of the loop in which answers came."""
        self._turn_is_planned = False
        self._go_on()

    cdef _advance(self):
        if self._finishing and not self._in_body():
            self._queue.close_last()
        if not self._writing_paused:
            self._ready_held += self._queue.take(self._ready)

    cdef _flush(self):
        """Write what is ready, in one go."""
        cdef list ready = self._ready
        if not ready or self._transport is None:
            return
        self._used = now_s()
        if self._ready_held:
            self._outgoing.add(ready, self._ready_held)
            self._ready, self._ready_held = [], 0
            self._send_more()
        elif len(ready) == 1:
            self._transport.write(ready.pop())
        else:
            self._ready = []
            write_all(self._transport, ready)
        if self._finishing:
            self._end_if_idle()

    cdef _send_more(self):
        """Give the transport the next piece of large answers."""
        self._outgoing.send_piece(self._transport, self._memory)
        self._writing_paused = self._transport_paused or self._outgoing.waits
        if self._outgoing.waits and not self._transport_paused:
            # The transport reports whether it has taken this piece at the end of this loop iteration.
            self._context.loop.call_soon(self.send_more)

    def send_more(self):
        """Send the next piece: the transport has taken the last one."""
        if self._transport is None or self._transport_paused:
            return
        if self._outgoing.waits:
            self._send_more()
        else:
            self._writing_paused = False
        if not self._writing_paused:
            self._go_on()

    cdef bint _has_unsent(self) except -1:
        """Whether a part of an answer waits after all has been sent that can be."""
        self._flush()
        return self._outgoing.waits

    # a client that does not read -------------------------------------------------

    cdef _pause(self):
        """The transport holds more than the client reads."""
        cdef int64_t size = self._transport.get_write_buffer_size()
        self._transport_paused = self._writing_paused = True
        if self._memory.hold(size, "answers that the client does not read") is None:
            self._unread = size
        else:
            self._context.loop.call_soon(self.cut)  # not within what the transport does now

    cdef _resume(self):
        """The client has read; `send_more` goes on."""
        self._transport_paused = False
        self._memory.release(self._unread)
        self._unread = 0

    def cut(self):
        """Close now; running requests are cancelled."""
        if self._transport is not None:
            self._transport.abort()
