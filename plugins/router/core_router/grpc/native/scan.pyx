# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
# distutils: language = c++
"""What a router needs of the messages of inference: names and sequences. See scan.pyi."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t
from libcpp cimport bool

from core_router.choice.sequences import SequenceParameters

cdef extern from "<string_view>" namespace "std" nogil:
    cdef cppclass string_view:
        string_view()
        string_view(const char* data, size_t size)
        const char* data()
        size_t size()

cdef extern from "infer_scan.hpp" namespace "core_router" nogil:
    cdef cppclass Scanned:
        string_view model, version, id, text
        bool has_sequence, is_text, is_signed, starts, ends
        uint64_t number

    cdef cppclass ScannedResponse:
        bool failed, goes_on
        string_view model, id

    Scanned scan(string_view message)
    ScannedResponse scan_response(string_view message)


cdef class RequestFields:
    pass


cdef inline str text(string_view part):
    return part.data()[: part.size()].decode("utf-8", "replace") if part.size() else ""


cdef inline string_view rest(bytes message, Py_ssize_t at):
    return string_view(PyBytes_AS_STRING(message) + at, PyBytes_GET_SIZE(message) - at)


cpdef RequestFields request_fields(bytes message, Py_ssize_t at):
    cdef Scanned found
    cdef RequestFields made = RequestFields.__new__(RequestFields)
    found = scan(rest(message, min(at, len(message))))
    made.model = text(found.model)
    made.version = text(found.version)
    made.id = text(found.id)
    if found.has_sequence:
        if found.is_text:
            identifier = text(found.text)
        elif found.is_signed:
            identifier = <int64_t>found.number
        else:
            identifier = found.number
        made.sequence = SequenceParameters(identifier, found.starts, found.ends)
    return made


cpdef tuple response_fields(bytes message, Py_ssize_t at):
    cdef ScannedResponse found
    found = scan_response(rest(message, min(at, len(message))))
    return found.failed, text(found.model), text(found.id), found.goes_on
