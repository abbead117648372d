# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""The fast lane of a connection; see lane.pyi.

bytes ─► head.hpp ─► [Lane] ─► parse ─► Server.infer ─► Reply ─► Flight ─► bytes

No task, coroutine or future is made for a request. `Lane._process` is the one place where bytes that
came are given on; all else asks it to go on.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy

from core.pipeline.intake cimport Door
from core.request cimport InferenceRequest
from core.response cimport Reply
from frontends.http.native.flight cimport Crew, Flight, Row
from frontends.http.native.now cimport now_s
from frontends.http.native.port cimport Head, Infer, More, Port, Regular, read
from frontends.http.native.recorder cimport Recorder, recorder_of
from frontends.http.native.told cimport Told, parsed, told_by

import sys

from core.errors import CoreError
from frontends.http.access_log import client_of
from frontends.http.native.reception import Reception
from frontends.http.patience import TOO_SLOW, Unfinished
from frontends.http.services.infer import refuse_decoupled

cdef enum:
    MOST_FLIGHTS = 64  # requests of one connection without an answer
    FEWER_FLIGHTS = 32  # reading goes on when there are no more than that
    SMALL = 8 * 1024  # a body up to this is copied rather than viewed: the read's other bytes go
    FIRST_ROOM = 64 * 1024  # taken for a body at once, if it says that it is larger
    DIRECT_FROM = 256 * 1024  # what is left of a body from which on the transport reads into it itself
    UNKNOWN = -1

# asyncio's writelines of these versions never asks the writer to pause.
cdef bint _CAN_GATHER = not (
    (3, 12) <= sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2)
)


cdef class Lane(Crew):
    """One connection; see lane.pxd."""

    def __init__(self, Port port):
        self._port = port
        self._going_on = UNKNOWN
        self._row = Row.__new__(Row)
        self._ready = []

    # what the transport calls ------------------------------------------------

    def connection_made(self, transport):
        self._transport = transport
        self._is_encrypted = transport.get_extra_info("ssl_object") is not None
        self._used = now_s()
        if self._port.access_log is not None:
            self._client = client_of(transport)
        self._watch(self._port.keep_alive_s)
        self._port.opened(self, transport)

    def connection_lost(self, exc):
        cdef Flight flight = self._row.empty(), after
        self._transport = None
        self._pending = self._body = None
        self._timer.cancel()
        if self._told is not None:
            self._told.leave()
        while flight is not None:
            if self._port.access_log is not None and flight.answer is None:
                (<Recorder>flight.crew).gone()
            after, flight.next, flight.crew = flight.next, None, None
            flight.leave()
            if flight.reply is not None:
                flight.reply.cancel()
            flight = after
        if self._guest is not None:
            self._guest.connection_lost(exc)
            self._guest = None
        self._port.lost(self)

    def eof_received(self):
        # As the other lane: the transport closes, who only half closed gets no answer.
        return None

    def pause_writing(self):
        self._writing_paused = True
        if self._guest is not None:
            self._guest.pause_writing()
        self._set_reading()

    def resume_writing(self):
        self._writing_paused = False
        if self._guest is not None:
            self._guest.resume_writing()
        self._go_on()

    def data_received(self, data):
        if self._transport is None:
            return
        cdef bytes found = data if type(data) is bytes else bytes(data)
        if self._pending is not None:
            found = self._pending + found
            self._pending = None
            if self._going_on != UNKNOWN:
                self._pending = found  # came in spite of the pause
                return
        self._process(found)
        self._flush()

    # in --------------------------------------------------------------------------

    cdef _process(self, bytes data):
        """Give on what can be given on; the rest is `_pending` then."""
        cdef const char* start = PyBytes_AS_STRING(data)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data), at = 0
        cdef Head head
        self._working = True
        self._going_on = UNKNOWN
        try:
            while at < size and self._transport is not None:
                self._advance()
                if self._with_guest:
                    if self._guest_is_done():
                        self._with_guest = False
                    else:
                        at = self._give_guest(data, at)
                elif self._body is not None:
                    at = self._receive(data, at)
                elif self._finishing:
                    at = size  # a request that came too late
                elif self._writing_paused or self._row.count == MOST_FLIGHTS:
                    self._going_on = FEWER_FLIGHTS
                    break
                elif self._takes_told(start + at, size - at):
                    at = self._begin(data, at + <Py_ssize_t>self._told.head.size)
                else:
                    head = read(start + at, size - at)
                    if head.verdict == More:
                        break
                    if self._takes_new(data, at, &head):
                        at = self._begin(data, at + <Py_ssize_t>head.size)
                    elif self._row.count:
                        self._going_on = 0  # the answers are in order: the guest comes after these
                        break
                    else:
                        self._invite_guest()
                        at = self._give_guest(data, at)
        finally:
            self._working = False
        if at < size and self._transport is not None:
            self._pending = data if at == 0 else data[at:]
        self._advance()
        self._set_reading()
        if (
            self._body is not None
            and self._body_size - self._received >= DIRECT_FROM
            and not self._reading_paused
            and not self._is_encrypted  # what is decrypted is copied anyhow
            and self._transport is not None
        ):
            self._reception = Reception(
                self, self._transport, self._body, self._received, self._body_size
            )
            self._reception.begin()

    cdef bint _takes_told(self, const char* data, Py_ssize_t size) except -1:
        """Whether the next head is, byte for byte, the last one, and its request this lane's."""
        cdef Told told = self._told
        if told is None or not told.heads(data, size) or not self._port.takes(&told.head):
            return False
        return self._port.guard is None or told.lets_in(self._port, self._transport)

    cdef bint _takes_new(self, bytes data, Py_ssize_t at, const Head* head) except -1:
        """Whether a request with another head is, which is told then."""
        if head.verdict != Infer or not self._port.takes(head):
            return False
        self._told = told_by(data[at : at + <Py_ssize_t>head.size])
        return self._port.guard is None or self._told.lets_in(self._port, self._transport)

    cdef Py_ssize_t _begin(self, bytes data, Py_ssize_t begin) except -1:
        """A request whose body is at `begin`; returns what comes behind all that is there of it."""
        cdef Py_ssize_t size = self._told.head.body_size, there = PyBytes_GET_SIZE(data) - begin
        if size <= there:
            if size <= SMALL:
                body = PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + begin, size)
            else:
                body = memoryview(data)[begin : begin + size]
            self._admit(body)
            return begin + size
        self._body_size = size
        self._received = 0
        self._body = bytearray()
        return self._receive(data, begin)

    cdef Py_ssize_t _receive(self, bytes data, Py_ssize_t at) except -1:
        """More of the body; returns what comes behind it."""
        cdef Py_ssize_t more = min(self._body_size - self._received, PyBytes_GET_SIZE(data) - at)
        cdef Py_ssize_t end = self._received + more
        if end > PyByteArray_GET_SIZE(self._body):
            # Grows with what has come: a length that is only claimed takes no memory.
            PyByteArray_Resize(self._body, min(self._body_size, max(2 * end, <Py_ssize_t>FIRST_ROOM)))
        memcpy(PyByteArray_AS_STRING(self._body) + self._received, PyBytes_AS_STRING(data) + at, more)
        self._received = end
        if end == self._body_size:
            body, self._body = self._body, None
            self._admit(body)
        return at + more

    def received(self):
        """The body is there: a Reception has got the rest of it."""
        self._reception = None
        if self._transport is None:
            return
        body, self._body = self._body, None
        self._working = True
        try:
            self._admit(body)
        finally:
            self._working = False
        self._go_on()

    cdef _admit(self, body):
        """Hand a complete request to its model: the one whose head was told last."""
        cdef Flight flight = Flight.__new__(Flight)
        cdef Reply reply
        cdef Port port = self._port
        cdef Door door
        cdef InferenceRequest request
        cdef Told told = self._told
        cdef Recorder recorder = None
        flight.crew = self
        if port.access_log is not None:
            flight.crew = recorder = recorder_of(self, port.access_log, self._client, told, body)
        flight.told = told
        if told.visit is not None:
            flight.visit, told.visit = told.visit, None
        self._row.add(flight)
        try:
            door = port.doors.find(told.model, told.head.version)
            if door.signature.decoupled:
                refuse_decoupled()
            request = parsed(port, told, door, body)
            flight.form = told.form
            if recorder is not None:
                recorder.asked(request)
            reply = door.ask(request)
            flight.reply = reply
            # The flight lets it go when it has the answer, which may be within this call.
            reply.listen(flight)
        except CoreError as error:
            flight.fail(error)
        except Exception:
            flight.fail(None)

    # the other lane ------------------------------------------------------------------

    cdef _invite_guest(self):
        """From here on all bytes are the guest's, until it has answered what they ask."""
        self._flush()
        if self._guest is None:
            self._guest = self._port.guest()
            self._guest.connection_made(self._transport)
        self._with_guest = True
        self._owed = 0
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()

    cdef bint _guest_is_done(self) except -1:
        """Whether the next byte is the first of a request, and all requests before it are answered.

        After a request whose end was not known, a blank line is one: while the guest is idle, every
        request of which it has seen the head is over, and no beginning of a head ends with that.
        """
        return (
            self._owed == 0 or self._owed == UNKNOWN and self._at_blank_line
        ) and self._guest.idle

    cdef Py_ssize_t _give_guest(self, bytes data, Py_ssize_t at) except -1:
        """Bytes that belong together; returns what comes behind them."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data), end = size
        cdef Head head
        if self._owed == 0:
            head = read(PyBytes_AS_STRING(data) + at, size - at)
            self._owed = UNKNOWN
            if head.verdict == Regular or head.verdict == Infer:
                self._owed = <int64_t>head.size + head.body_size
        if self._owed != UNKNOWN:
            end = min(size, at + <Py_ssize_t>self._owed)
            self._owed -= end - at
        self._at_blank_line = end - at >= 4 and not memcmp(
            PyBytes_AS_STRING(data) + end - 4, b"\r\n\r\n", 4
        )
        self._guest.data_received(data if end - at == size else data[at:end])
        return end

    # out ---------------------------------------------------------------------------

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

    cdef _go_on(self):
        """Give what there is and, if that made room, go on with what waits."""
        if self._transport is None or self._working:
            return
        self._advance()
        while (
            self._pending is not None
            and 0 <= self._row.count <= self._going_on
            and not self._writing_paused
            and self._transport is not None
        ):
            data, self._pending = self._pending, None
            self._process(data)
        self._flush()
        self._set_reading()
        if self._finishing:
            self._end_if_idle()

    cdef _advance(self):
        if not self._writing_paused:
            self._row.take(self._ready)

    cdef _flush(self):
        """Write what is ready, in one go."""
        cdef list ready = self._ready
        if not ready or self._transport is None:
            return
        self._used = now_s()
        if len(ready) == 1:
            self._transport.write(ready.pop())
            if self._finishing:
                self._end_if_idle()
            return
        self._ready = []
        if _CAN_GATHER:
            self._transport.writelines(ready)
        else:
            for buffer in ready:
                self._transport.write(buffer)
        if self._finishing:
            self._end_if_idle()

    cdef _set_reading(self):
        cdef bint pause = self._going_on != UNKNOWN or self._writing_paused
        if self._with_guest or self._transport is None or pause == self._reading_paused:
            return  # the guest itself says when it wants to read
        self._reading_paused = pause
        if pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    # a client that is slow --------------------------------------------------------------

    @property
    def transport(self):
        return self._transport

    def unfinished(self):
        if self._with_guest:
            return self._guest.unfinished()
        if self._body is not None and not self._reading_paused:
            received = self._received if self._reception is None else self._reception.there
            return Unfinished(True, self._used, received)
        if self._pending is not None and self._going_on == UNKNOWN and not self._row.count:
            return Unfinished(False, self._used, PyBytes_GET_SIZE(self._pending))

    def give_up(self):
        if self._with_guest:
            self._guest.give_up()
        elif self._transport is not None:
            if not self._row.count:
                self._transport.write(TOO_SLOW)
            self._transport.close()

    # the end --------------------------------------------------------------------------

    def finish(self):
        """Close when the last request that has begun is answered; now, if there is none."""
        self._finishing = True
        if self._body is None and not self._with_guest:
            self._pending = None
            self._going_on = UNKNOWN
        self._end_if_idle()

    def cut(self):
        """Close now; requests in flight are cancelled."""
        if self._transport is not None:
            self._transport.abort()

    cdef _end_if_idle(self):
        if self._transport is None or self._row.count or self._ready or self._body is not None:
            return
        # A busy guest closes the transport itself, for it was told too.
        if not self._with_guest or not self._guest.busy:
            self._transport.close()

    cdef _watch(self, double seconds):
        self._timer = self._port.loop.call_later(seconds, self.look)

    def look(self):
        """Close a connection on which nothing was answered for as long as the port keeps it."""
        if self._transport is None:
            return
        cdef double limit = self._port.keep_alive_s, used = self._used
        if self._row.count or self._body is not None or self._with_guest and not self._guest.idle:
            self._watch(limit)
            return
        if self._guest is not None:
            used = max(used, self._guest.used)
        used += limit - now_s()
        if used > 0:
            self._watch(used)
        else:
            self._transport.close()
