from core.response cimport InferenceResponse, ReplyListener
from core.tensor cimport Tensor


cdef class PartWriter:
    cdef object _transport, _protocol, _writer, _loop, _timer
    cdef bint _chunked
    cdef list _held  # parts that the next write takes
    cdef Py_ssize_t _size  # of them
    cdef double _last  # time of the last write
    cdef public bint busy

    cdef bint send(self, bytes part) except -1
    cdef _write(self, bytes part)
    cpdef flush(self)


cdef class EventQueue:
    cdef object _backlog, _parts, _arrived
    cdef PartWriter _writer
    cdef bint _waits  # whether a reader waits for `_arrived`
    cdef Py_ssize_t _untold, _untold_bytes  # parts that wait, and that the backlog does not count yet
    cdef readonly bint ended

    cpdef add(self, part, Py_ssize_t size)
    cdef _tell(self)
    cdef _wake(self)


cdef class TextEvents(ReplyListener):
    cdef EventQueue _queue
    cdef str _output
    cdef object _others
    cdef bint _ignores_finish
    cdef bytes _before, _behind

    cdef bytes _event(self, InferenceResponse response)
    cdef bytes _written(self, Tensor text)
    cdef bytes _framed(self, const char* data, Py_ssize_t size)
