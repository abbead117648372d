import cython

from core.pipeline.intake cimport Door
from frontends.http.native.port cimport Head, Port


@cython.final
cdef class Told:
    """What the head of one request says.

    data        the head itself, which `head` points into: a client's next head is often the same
    json_size   bytes of JSON that it names; negative for none, and for what takes a longer look
    """

    cdef bytes data
    cdef Head head
    cdef str model
    cdef Py_ssize_t json_size

    cdef dict headers(self)


cdef Told told_by(bytes data)
cdef tuple parsed(Port port, Told told, Door door, body)
