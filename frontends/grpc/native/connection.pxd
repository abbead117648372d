from libc.stdint cimport int32_t, int64_t

from frontends.grpc.native.engine_context cimport EngineContext
from frontends.grpc.native.session cimport Event, PythonHost, Session


cdef class Connection:
    cdef EngineContext port
    cdef PythonHost host
    cdef Session* session
    cdef object transport, timer
    cdef readonly object share  # of the server's account of memory
    cdef int64_t timer_ns
    # busy: `proceed` or a callback of the session is running; with `more`, `proceed` sends the new output too
    cdef bint busy, more, scheduled, paused, closing

    cdef proceed(self)
    cdef write(self)
    cdef soon(self)
    cdef close(self)
    cdef arm(self)
    cpdef refuse_calls(self)
    cpdef cut_off(self)
    cdef handle_events(self)
    cdef on_request(self, Event& event)
    cdef on_open(self, Event& event)
    cdef on_stream_event(self, Event& event)
    cdef new_handle(self, int32_t id, int32_t method)
    cdef keep(self, object call)
    cdef bint admit(self, int32_t id, int32_t method)
