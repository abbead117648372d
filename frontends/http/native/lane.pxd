import cython

from frontends.http.native.flight cimport Crew, Flight, Row
from frontends.http.native.guest cimport Guest
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
    cdef object _share  # of the memory of all connections
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
    cdef bint _repeats  # the last head was the one before it
    cdef object _reception  # who receives now; None for this lane itself

    cdef Guest _guest

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
    cdef _receive_elsewhere(self)
    cdef bytes _leave_reception(self)
    cdef _admit(self, body)
    cdef _admit_alone(self, body)
    cdef _invite_guest(self)
    cdef _go_on(self)
    cdef _advance(self)
    cdef _flush(self)
    cdef _set_reading(self)
    cdef _end_if_idle(self)
    cdef bint _in_body(self) except -1
    cdef _watch(self, double seconds)
