from libc.stdint cimport int64_t

from frontends.http.native.pending_response cimport ResponseSink, ResponseQueue
from frontends.http.native.outgoing cimport Outgoing
from frontends.http.native.listener_context cimport ListenerContext
from frontends.http.native.connection_memory cimport ConnectionMemory


cdef class ResponseWriter(ResponseSink):
    """The part of a FastConnection that writes responses, and waits for slow clients. Loop thread only.

    A response is in one place at a time: in `_queue` until all before it are ready, in `_ready` until the
    next write, in `_outgoing` if memory is counted for it, in the transport.
    """

    cdef ListenerContext _context
    cdef object _transport
    cdef ConnectionMemory _memory  # of the memory that this connection holds
    cdef ResponseQueue _queue
    cdef list _ready  # buffers to be written
    cdef int64_t _ready_held  # bytes that are counted for them: they are written piece by piece
    cdef Outgoing _outgoing
    cdef int64_t _unread  # bytes counted for the buffer of the transport
    cdef double _used  # when the last answer was given
    cdef bint _working  # received bytes are being processed; ready responses are written afterwards
    cdef bint _turn_is_planned
    cdef bint _transport_paused
    cdef bint _writing_paused  # the transport is, or a part of an answer waits
    cdef bint _finishing  # the last request has begun

    cdef _go_on(self)
    cdef _end_if_idle(self)
    cdef bint _in_body(self) except -1
    cdef _advance(self)
    cdef _flush(self)
    cdef _send_more(self)
    cdef bint _has_unsent(self) except -1
    cdef _pause(self)
    cdef _resume(self)
