from core.request cimport InferenceRequest
from frontends.http.native.flight cimport Crew, Flight
from frontends.http.native.told cimport Told


cdef class Recorder(Crew):
    """Stands between a flight and its lane, and writes the line of its request.

    lane     who waits for the answer in truth
    access   the log
    entry    what is known of the request
    """

    cdef Crew lane
    cdef object access, entry

    cdef asked(self, InferenceRequest request)
    cdef refused(self, body)
    cdef gone(self)


cdef Recorder recorder_of(Crew lane, access, client, Told told, body)
