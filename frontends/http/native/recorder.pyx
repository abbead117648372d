# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Lines of the access log for what the fast lane answers; see recorder.pyi.

Flight ─► [Recorder] ─► Lane.  Made for a request only where there is such a log.
"""

from cpython.bytes cimport PyBytes_GET_SIZE

from core.request cimport InferenceRequest
from frontends.http.native.flight cimport Crew, Flight
from frontends.http.native.told cimport Told

from frontends.shared.access_log import GONE, Entry
from frontends.http.access_log import named_id, plain_path


cdef class Recorder(Crew):
    """See recorder.pxd."""

    cdef asked(self, InferenceRequest request):
        """The request could be read."""
        self.entry.id = request.id

    cdef refused(self, body):
        """The request was not read."""
        if not self.entry.id:
            self.entry.id = named_id(body)

    cdef was_read(self, Flight flight, InferenceRequest request):
        self.asked(request)
        self.lane.was_read(flight, request)

    cdef settle(self, Flight flight):
        self.lane.settle(flight)

    cdef answered(self, Flight flight):
        # The lane may let the flight go, and with it this object.
        hold = self
        cdef Crew lane = self.lane
        answer = flight.answer
        head = answer if type(answer) is bytes else answer[0]
        cdef Py_ssize_t size = PyBytes_GET_SIZE(answer) if type(answer) is bytes else sum(map(len, answer))
        self.access.write(
            self.entry, int(head[9:12]), size - (<bytes>head).find(b"\r\n\r\n") - 4
        )
        lane.answered(flight)

    cdef gone(self):
        """The client has gone before the answer."""
        self.access.write(self.entry, GONE, 0)


cdef Recorder recorder_of(Crew lane, access, client, Told told, body):
    """For a request that is complete."""
    cdef Recorder found = Recorder.__new__(Recorder)
    cdef bytes head = told.data
    found.lane = lane
    found.access = access
    entry = Entry("http", client, _path(head), "POST")
    entry.model = told.model
    entry.version = "" if told.head.version < 0 else str(told.head.version)
    entry.bytes_in = len(body)
    if told.active is not None:
        entry.come_from(told.active.caller)
    at = head.lower().find(b"\r\ntraceparent:")
    if at >= 0:
        line = head[at + 14 : head.find(b"\r\n", at + 2)]
        entry.belong(line.decode("latin-1"))
    found.entry = entry
    return found


cdef str _path(bytes head):
    """Of a request line that the lane has read: it is POST, a path and the version."""
    return plain_path(head[5 : head.find(b" ", 5)].decode("latin-1"))
