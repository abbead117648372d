# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""ResponseWriter: writes the responses of a connection.

PendingResponse ─► [ResponseWriter] ─► transport.  Responses leave in the order of their requests; one write
sends all ready ones. Large and waiting responses are counted (connection_memory.pyx) and sent in pieces.
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
    SMALL = 8 * 1024  # a response up to this size is not counted
    LARGE = 64 * 1024  # a larger response is counted even if it can be sent at once


cdef class ResponseWriter(ResponseSink):
    """The part of a FastConnection that writes responses, and waits for slow clients."""

    def __init__(self, ListenerContext context):
        self._context = context
        self._queue = ResponseQueue.__new__(ResponseQueue)
        self._outgoing = Outgoing.__new__(Outgoing)
        self._ready = []

    # methods of FastConnection ---------------------------------------------------------

    cdef _go_on(self):
        """Write the ready responses, and process waiting bytes if the limits permit it."""
        raise NotImplementedError

    cdef _end_if_idle(self):
        """Close the connection if no request is running or being received, and no response is unsent."""
        raise NotImplementedError

    cdef bint _in_body(self) except -1:
        """Return whether a body is being received."""
        raise NotImplementedError

    # responses -----------------------------------------------------------------

    cdef settle(self, PendingResponse pending):
        """Count a large or waiting response; replace it by an error if the memory account refuses it."""
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
        """Write the response if it is first in the queue: now, or with others at the end of the iteration."""
        if self._working or pending is not self._queue.first:
            return
        if pending.next is None:
            self._go_on()
        elif not self._turn_is_planned:
            # Other responses may become ready in this loop iteration: one write sends all.
            self._turn_is_planned = True
            self._context.loop.call_soon(self.turn)

    def turn(self):
        """Write the responses that became ready in this iteration of the loop, with one call."""
        self._turn_is_planned = False
        self._go_on()

    cdef _advance(self):
        if self._finishing and not self._in_body():
            self._queue.close_last()
        if not self._writing_paused:
            self._ready_held += self._queue.take(self._ready)

    cdef _flush(self):
        """Write all ready responses with one call; of counted ones, such as large ones, the first piece."""
        cdef list ready = self._ready
        if not ready or self._transport is None:
            return
        self._used = now_s()
        if self._ready_held:
            self._outgoing.add(ready, self._ready_held)
            self._ready, self._ready_held = [], 0
            self._send_more()
        else:
            self._ready = []
            if len(ready) == 1:
                self._transport.write(ready[0])
            else:
                write_all(self._transport, ready)
        if self._finishing:
            self._end_if_idle()

    cdef _send_more(self):
        """Write the next piece of large responses; if more remain, plan the next call of `send_more`."""
        self._outgoing.send_piece(self._transport, self._memory)
        self._writing_paused = self._transport_paused or self._outgoing.waits
        if self._outgoing.waits and not self._transport_paused:
            # The transport reports whether it has taken this piece at the end of this loop iteration.
            self._context.loop.call_soon(self.send_more)

    def send_more(self):
        """Send the next piece of large responses; do nothing while the transport is paused."""
        if self._transport is None or self._transport_paused:
            return
        if self._outgoing.waits:
            self._send_more()
        else:
            self._writing_paused = False
        if not self._writing_paused:
            self._go_on()

    cdef bint _has_unsent(self) except -1:
        """Write the ready responses; return whether a part of a large one remains in `_outgoing`."""
        self._flush()
        return self._outgoing.waits

    # a client that does not read -------------------------------------------------

    cdef _pause(self):
        """Stop writing for a slow client. Count the bytes that the transport buffers; if the memory account
        refuses them, close the connection.
        """
        cdef int64_t size = self._transport.get_write_buffer_size()
        self._transport_paused = self._writing_paused = True
        if self._memory.hold(size, "answers that the client does not read") is None:
            self._unread = size
        else:
            self._context.loop.call_soon(self.cut)  # not within this call of the transport

    cdef _resume(self):
        """Release the count of `_pause`; the caller continues with `send_more`."""
        self._transport_paused = False
        self._memory.release(self._unread)
        self._unread = 0

    def cut(self):
        """Close the connection now; running requests are cancelled."""
        if self._transport is not None:
            self._transport.abort()
