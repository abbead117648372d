import cython

from libc.stdint cimport int64_t

from frontends.http.native.flight cimport Crew, Flight, Row
from frontends.http.native.port cimport Head, Port
from frontends.http.native.told cimport Told


@cython.final
cdef class Lane(Crew):
    """One connection; see lane.pyi.

    Bytes are in one place at a time: `_pending` (not looked at, or the beginning of a head), `_body`
    (of the request that is being received), with the guest, or in a flight.
    """

    cdef Port _port
    cdef object _transport
    cdef bint _is_encrypted
    cdef object _timer
    cdef double _used  # when the last answer was given

    # in
    cdef bytes _pending
    cdef bytearray _body  # with room for what may come; None between requests
    cdef Py_ssize_t _body_size, _received
    cdef Told _told  # of the last head for inference
    cdef bint _working  # within _process
    cdef int _going_on  # _pending waits until there are no more flights than this; UNKNOWN: it does not
    cdef bint _reading_paused
    cdef object _reception  # who receives the body now; None for this lane itself

    # the other lane
    cdef object _guest
    cdef bint _with_guest
    cdef int64_t _owed  # bytes of the request that the guest is being given; UNKNOWN: it alone knows
    cdef bint _at_blank_line  # the last bytes that the guest was given end with one

    # out
    cdef Row _row
    cdef list _ready  # buffers to be written
    cdef bint _turn_is_planned
    cdef bint _writing_paused
    cdef bint _finishing

    # for the access log, if there is one
    cdef str _client

    cdef _process(self, bytes data)
    cdef bint _takes_told(self, const char* data, Py_ssize_t size) except -1
    cdef bint _takes_new(self, bytes data, Py_ssize_t at, const Head* head) except -1
    cdef Py_ssize_t _begin(self, bytes data, Py_ssize_t begin) except -1
    cdef Py_ssize_t _receive(self, bytes data, Py_ssize_t at) except -1
    cdef _admit(self, body)
    cdef _invite_guest(self)
    cdef bint _guest_is_done(self) except -1
    cdef Py_ssize_t _give_guest(self, bytes data, Py_ssize_t at) except -1
    cdef _go_on(self)
    cdef _advance(self)
    cdef _flush(self)
    cdef _set_reading(self)
    cdef _end_if_idle(self)
    cdef _watch(self, double seconds)
