# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""The fast lane of a connection; see lane.pyi.

bytes ─► head.hpp ─► [Lane] ─► parse ─► Server.infer ─► Reply ─► Flight ─► bytes

No task, coroutine or future is made for a request. `Lane._process` is the one place where bytes that
came are given on; all else asks it to go on.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t

from core.pipeline.endpoint cimport ModelEndpoint
from core.request cimport InferenceRequest
from core.response cimport Reply
from frontends.http.native.body cimport BodyReader
from frontends.http.native.flight cimport Flight
from frontends.http.native.guest cimport Guest
from frontends.http.native.now cimport now_s
from frontends.http.native.outgoing cimport Outgoing
from frontends.http.native.port cimport Head, Infer, More, Port, read
from frontends.http.native.reading cimport read_aside
from frontends.http.native.tally cimport made_for, tally_of
from frontends.http.native.told cimport NO_JSON_SIZE, Told, parsed, told_by

from core.errors import CoreError
from frontends.http.access_log import client_of, entry_of_head, named_id
from frontends.http.aside import TakesLong
from frontends.http.native.reception import Landing, Reception
from frontends.http.patience import TOO_SLOW, Unfinished
from frontends.http.services.infer import refuse_decoupled

cdef enum:
    MOST_FLIGHTS = 64  # requests of one connection without an answer
    FEWER_FLIGHTS = 32  # reading goes on when there are no more than that
    SMALL = 8 * 1024  # a body up to this is copied rather than viewed: the read's other bytes go
    DIRECT_FROM = 256 * 1024  # what is left of a body from which on the transport reads into it itself
    LANDS_FROM = 32 * 1024  # bytes of a body for which the transport does so from the first of the next one on
    LANDS_TO = 1024 * 1024  # and up to which it does: room is taken before the body is there
    UNKNOWN = -1

cdef double _LINGER_S = 10.0  # for a client that still sends a body while its refusal is on the way


cdef class Lane(BodyReader):
    """One connection; see lane.pxd."""

    def __init__(self, Port port):
        super().__init__(port)
        self._going_on = UNKNOWN
        self._guest = Guest.__new__(Guest)

    # what the transport calls ------------------------------------------------

    def connection_made(self, transport):
        self._transport = transport
        self._tally = tally_of(self._port.account.share())
        self._is_encrypted = transport.get_extra_info("ssl_object") is not None
        self._used = now_s()
        if self._port.access_log is not None:
            self._client = client_of(transport)
        self._watch(self._port.keep_alive_s)
        self._port.opened(self, transport)

    def connection_lost(self, exc):
        cdef Flight flight = self._row.empty(), after
        self._transport = None
        self._outgoing = Outgoing.__new__(Outgoing)
        self._tally.close()
        self._pending = self._body = None
        self._timer.cancel()
        self._reception = None
        if self._told is not None:
            self._told.leave()
        while flight is not None:
            after, flight.next, flight.crew = flight.next, None, None
            flight.leave()
            if flight.reply is not None:
                flight.reply.cancel()
            flight = after
        self._guest.leave(exc)
        self._port.lost(self)

    def eof_received(self):
        # As the other lane: the transport closes, who only half closed gets no answer.
        return None

    def pause_writing(self):
        self._pause()
        if self._guest.protocol is not None:
            self._guest.protocol.pause_writing()
        self._set_reading()

    def resume_writing(self):
        self._resume()
        if self._guest.protocol is not None:
            self._guest.protocol.resume_writing()
        self.send_more()

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
                if self._guest.here:
                    if self._guest.is_done():
                        self._guest.here = False
                    else:
                        at = self._guest.give(data, at)
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
                    self._repeats = False
                    if self._takes_new(data, at, &head):
                        at = self._begin(data, at + <Py_ssize_t>head.size)
                    elif self._row.count or self._has_unsent():
                        self._going_on = 0  # the answers are in order: the guest comes after these
                        break
                    else:
                        self._invite_guest()
                        at = self._guest.give(data, at)
        finally:
            self._working = False
        if at < size and self._transport is not None:
            self._pending = data if at == 0 else data[at:]
        self._advance()
        self._set_reading()
        self._receive_elsewhere()

    cdef bint _takes_told(self, const char* data, Py_ssize_t size) except -1:
        """Whether the next head is the last one, perhaps with other sizes, and its request this lane's."""
        cdef Told told = self._told
        if told is None:
            return False
        self._repeats = told.heads(data, size)  # byte for byte
        if not (self._repeats or told.heads_but_sizes(data, size)) or not self._port.takes(&told.head):
            return False
        return self._port.interceptors is None or told.lets_in(self._port, self._transport)

    cdef bint _takes_new(self, bytes data, Py_ssize_t at, const Head* head) except -1:
        """Whether a request with another head is, which is told then."""
        if head.verdict != Infer or not self._port.takes(head):
            return False
        self._told = told_by(data[at : at + <Py_ssize_t>head.size], self._told)
        return self._port.interceptors is None or self._told.lets_in(self._port, self._transport)

    cdef Py_ssize_t _begin(self, bytes data, Py_ssize_t begin) except -1:
        """A request whose body is at `begin`; returns what comes behind all that is there of it."""
        cdef Py_ssize_t size = self._told.head.body_size, there = PyBytes_GET_SIZE(data) - begin
        if size <= there:
            if size <= SMALL:
                body = PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + begin, size)
            else:
                if not self.grow(size):
                    self._refuse(self._refusal)
                    return begin + size
                body = memoryview(data)[begin : begin + size]
            self._admit(body)
            return begin + size
        self._body_size = size
        self._received = 0
        self._body = bytearray()
        return self._receive(data, begin)

    cdef _receive_elsewhere(self):
        """Let the transport read into the body itself, or into the next one, if these are large."""
        cdef Told told = self._told
        if self._transport is None or self._reading_paused or self._is_encrypted:
            return  # what is decrypted is copied anyhow
        if self._body is not None:
            if self._body_size - self._received >= DIRECT_FROM:
                self._reception = Reception(
                    self, self._transport, self._body, self._received, self._body_size
                )
                self._reception.begin()
        elif (
            self._repeats
            and LANDS_FROM <= told.head.body_size <= LANDS_TO
            and self._pending is None
            and not (self._guest.here or self._finishing)
        ):
            self._reception = Landing(
                self, self._transport, told.data, told.head.body_size, max(told.json_size, 0)
            )
            self._reception.begin()

    def landed(self, bytearray room, Py_ssize_t begin, Py_ssize_t there):
        """A Landing has got a request, from `begin` on in the room; `there` bytes have come."""
        cdef Told told = self._told
        cdef Py_ssize_t head_size = told.head.size, size = head_size + told.head.body_size
        if self._transport is None:
            return
        if (
            there > size
            or self._writing_paused
            or self._row.count == MOST_FLIGHTS
            or not self._takes_told(PyByteArray_AS_STRING(room) + begin, there)
        ):
            self._leave_reception()
            self.data_received(bytes(room[begin : begin + there]))
            return
        if self._finishing:
            self._leave_reception()
        self._admit_alone(memoryview(room)[begin + head_size : begin + size])

    def astray(self):
        """A Landing has got something else than the request that it is for."""
        self.data_received(self._leave_reception())

    cdef bytes _leave_reception(self):
        """Receive again; returns what a Landing has got of the next request."""
        reception, self._reception = self._reception, None
        self._tally.release(self._body_held)
        self._body_held = 0
        return reception.leave()

    cdef _admit_alone(self, body):
        self._working = True
        try:
            self._admit(body)
        finally:
            self._working = False
        self._go_on()

    cdef Flight _new_flight(self, body):
        """The flight of a request: the one whose head was told last."""
        cdef Flight flight = Flight.__new__(Flight)
        cdef Told told = self._told
        flight.crew = self
        flight.told = told
        if told.active is not None:
            flight.active, told.active = told.active, None
            if self._port.access_log is not None:
                flight.active.record(self._port.access_log, entry_of_head(
                    self._client, told.data, told.model, told.head.version, len(body)
                ))
        flight.held, self._body_held = self._body_held, 0
        self._row.add(flight)
        return flight

    cdef was_read(self, Flight flight, InferenceRequest request):
        """Count the tensors that were made for a request. Raises MemoryExhausted."""
        if self._port.access_log is not None:
            flight.active.entry.id = request.id
        cdef int64_t size = made_for(request, flight.told.json_size != NO_JSON_SIZE)
        error = self._tally.hold(size, "the tensors of the request")
        if error is not None:
            raise error
        flight.held += size

    cdef _admit(self, body):
        """Hand a complete request to its model: the one whose head was told last."""
        cdef Flight flight = self._new_flight(body)
        cdef Reply reply
        cdef Port port = self._port
        cdef ModelEndpoint endpoint
        cdef InferenceRequest request
        cdef Told told = self._told
        try:
            endpoint = port.endpoints.find(told.model, told.head.version)
            if endpoint.signature.decoupled:
                refuse_decoupled()
            request = parsed(port, told, endpoint, body)
            flight.form = told.form
            if self._port.access_log is not None:
                flight.active.entry.id = request.id
            if type(body) is not bytes:  # it is large
                self.was_read(flight, request)
            reply = endpoint.submit(request)
            flight.reply = reply
            # The flight lets it go when it has the answer, which may be within this call.
            reply.listen(flight)
        except TakesLong:
            read_aside(port, flight, endpoint.signature, body)
        except CoreError as error:
            if self._port.access_log is not None and flight.active is not None and not flight.active.entry.id:
                flight.active.entry.id = named_id(body)
            flight.fail(error)
        except Exception:
            flight.fail(None)

    # the other lane ------------------------------------------------------------------

    cdef _invite_guest(self):
        """From here on all bytes are the guest's, until it has answered what they ask."""
        self._flush()
        self._guest.come(self._port, self._transport, self._tally.share)
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()

    # out ---------------------------------------------------------------------------

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

    cdef _set_reading(self):
        cdef bint pause = self._going_on != UNKNOWN or self._writing_paused
        if self._guest.here or self._transport is None or pause == self._reading_paused:
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
        if self._guest.here:
            return self._guest.protocol.unfinished()
        if self._reception is not None and self._reception.there and not self._reading_paused:
            return Unfinished(self._reception.in_body, self._used, self._reception.there)
        if self._body is not None and not self._reading_paused:
            return Unfinished(True, self._used, self._received)
        if self._pending is not None and self._going_on == UNKNOWN and not self._row.count:
            return Unfinished(False, self._used, PyBytes_GET_SIZE(self._pending))

    def give_up(self):
        if self._guest.here:
            self._guest.protocol.give_up()
        elif self._transport is not None:
            if not self._row.count and not self._outgoing.waits:
                self._transport.write(TOO_SLOW)
            self._transport.close()

    # the end --------------------------------------------------------------------------

    def finish(self):
        """Close when the last request that has begun is answered; now, if there is none."""
        self._finishing = True
        if self._reception is not None and not self._reception.in_body:
            self._leave_reception()  # with the beginning of a head
        if self._body is None and not self._guest.here:
            self._pending = None
            self._going_on = UNKNOWN
        if self._lingering:
            self._transport.close()
        self._end_if_idle()

    cdef _end_if_idle(self):
        if self._transport is None or self._row.count or self._ready or self._in_body():
            return
        if self._outgoing.waits:
            return
        if self._refusing:
            self._linger()
            return
        # A busy guest closes the transport itself, for it was told too.
        if not self._guest.here or not self._guest.protocol.busy:
            self._transport.close()

    cdef _linger(self):
        """End when the client has read its refusal: bytes that nobody reads would tear it down before."""
        if self._lingering:
            return
        self._lingering = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._port.loop.call_later(_LINGER_S, self.cut)

    cdef _watch(self, double seconds):
        self._timer = self._port.loop.call_later(seconds, self.look)

    def look(self):
        """Close a connection on which nothing was answered for as long as the port keeps it."""
        if self._transport is None:
            return
        cdef double limit = self._port.keep_alive_s, used = self._used
        if self._row.count or self._in_body() or self._guest.here and not self._guest.protocol.idle:
            self._watch(limit)
            return
        if self._guest.protocol is not None:
            used = max(used, self._guest.protocol.used)
        used += limit - now_s()
        if used > 0:
            self._watch(used)
        else:
            self._transport.close()
