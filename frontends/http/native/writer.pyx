# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""How the answers of a lane leave; see writer.pxd.

Flight ─► [LaneWriter] ─► transport.  Answers leave in the order of their requests, all that are ready in one
write. What is large, or waits for the client, is counted (tally.pyx) and given to the transport piece by piece.
"""

from cpython.bytes cimport PyBytes_GET_SIZE
from libc.stdint cimport int64_t

from core.request cimport InferenceRequest
from frontends.http.native.flight cimport Crew, Flight, Row, write_all
from frontends.http.native.now cimport now_s
from frontends.http.native.outgoing cimport Outgoing
from frontends.http.native.port cimport Port
from frontends.http.native.tally cimport size_of

cdef enum:
    SMALL = 8 * 1024  # an answer up to this is not counted
    LARGE = 64 * 1024  # an answer above this is counted also if it can be sent at once


cdef class LaneWriter(Crew):
    """See writer.pxd."""

    def __init__(self, Port port):
        self._port = port
        self._row = Row.__new__(Row)
        self._outgoing = Outgoing.__new__(Outgoing)
        self._ready = []

    # what a lane does ----------------------------------------------------------

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

    cdef settle(self, Flight flight):
        """Count an answer that is large, or waits; one that there is no room for becomes an error."""
        cdef int64_t size
        if flight.held:
            self._tally.release(flight.held)
            flight.held = 0
        if type(flight.answer) is bytes:
            size = PyBytes_GET_SIZE(<bytes>flight.answer)
            if size <= SMALL:
                return
            if size <= LARGE and flight is self._row.first and not self._writing_paused:
                return
        size = size_of(flight.answer)
        error = self._tally.hold(size, "the answer")
        if error is None:
            flight.held = size
            return
        crew, flight.crew, flight.answer = flight.crew, None, None
        flight.fail(error)
        flight.crew = crew

    cdef answered(self, Flight flight):
        """A flight of this lane has its answer."""
        if self._working or flight is not self._row.first:
            return
        if flight.next is None:
            self._go_on()
        elif not self._turn_is_planned:
            # Others of this connection may end in this turn: one write for all.
            self._turn_is_planned = True
            self._port.loop.call_soon(self.turn)

    def turn(self):
        """The end of a turn of the loop in which answers came."""
        self._turn_is_planned = False
        self._go_on()

    cdef _advance(self):
        if self._finishing and not self._in_body():
            self._row.close_last()
        if not self._writing_paused:
            self._ready_held += self._row.take(self._ready)

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
        self._outgoing.send_piece(self._transport, self._tally)
        self._writing_paused = self._transport_paused or self._outgoing.waits
        if self._outgoing.waits and not self._transport_paused:
            # Whether it has taken this piece it says at the end of the turn.
            self._port.loop.call_soon(self.send_more)

    def send_more(self):
        """The transport has taken what it got."""
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
        if self._tally.hold(size, "answers that the client does not read") is None:
            self._unread = size
        else:
            self._port.loop.call_soon(self.cut)  # not within what the transport does now

    cdef _resume(self):
        """The client has read; `send_more` goes on."""
        self._transport_paused = False
        self._tally.release(self._unread)
        self._unread = 0

    def cut(self):
        """Close now; requests in flight are cancelled."""
        if self._transport is not None:
            self._transport.abort()
