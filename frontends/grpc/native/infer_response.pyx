# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""InferenceResponse → ModelInferResponse, without protobuf.

InferenceResponse ─► [response] ─► infer_response.hpp ─► bytes or parts
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as boolean
from libcpp.vector cimport vector

from core.native.arrays cimport fill, length
from core.request cimport InferenceRequest
from core.response cimport InferenceResponse
from core.tensor cimport Tensor
from frontends.grpc.native.repeated cimport answered_again, keep_answer

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef extern from "infer_response.hpp" namespace "infer" nogil:
    cdef cppclass Span:
        const char* data
        size_t size

    const char kRawOutputContents
    const char kInferResponse
    const size_t kLongestPrefix

    size_t varint_size(uint64_t)
    char* put_prefix(char*, char, uint64_t)

    cdef cppclass ResponseWriter:
        ResponseWriter()
        const char* data()
        size_t size()
        void text(uint32_t, Span) except +
        void version(int64_t) except +
        void parameter_bool(Span, boolean) except +
        void parameter_int64(Span, int64_t) except +
        void parameter_string(Span, Span) except +
        void parameter_double(Span, double) except +
        void output(Span, Span, const int64_t*, size_t) except +

COPIED_BYTES = 4096
cdef size_t _copied_bytes = COPIED_BYTES
cdef str _FINAL = "triton_final_response"


cdef inline Span _span(object text) except *:
    """Return a view of a str in UTF-8, valid as long as the str. Raises UnicodeEncodeError for surrogates."""
    cdef Py_ssize_t size = 0
    cdef Span span
    span.data = PyUnicode_AsUTF8AndSize(text, &size)
    span.size = <size_t>size
    return span


cpdef response(InferenceResponse answer, InferenceRequest request):
    """Return the encoded ModelInferResponse of `answer`: bytes, or a list of buffers if it is large.

    Return None if the encoder with protobuf must write it.
    """
    cdef bytes again
    try:
        again = None if request.shared else answered_again(answer)
        return again if again is not None else _response(answer, request, None, False)
    except Exception:  # the encoder with protobuf raises and reports the same error
        return None


def stream_response(
    InferenceResponse answer not None, InferenceRequest request not None, bint final
):
    """Return the bytes of a ModelStreamInferResponse; None if the encoder with protobuf must write it."""
    try:
        return _response(answer, request, final, True)
    except Exception:
        return None


cdef _response(InferenceResponse answer, InferenceRequest request, final, bint streamed):
    """Return an encoded response: bytes, or a list of buffers.

    final      value of the parameter triton_final_response; None to omit it
    streamed   return a ModelStreamInferResponse, always as bytes
    """
    cdef ResponseWriter head
    cdef list raws = []
    cdef vector[size_t] sizes
    cdef size_t total = 0, size
    cdef list outputs = answer.outputs
    cdef Tensor tensor
    sizes.reserve(<size_t>len(outputs))
    head.text(1, _span(answer.model_name))
    head.version(answer.model_version)
    head.text(3, _span(answer.id))
    cdef dict parameters = answer._parameters
    if final is not None:
        parameters = {**answer.parameters, _FINAL: final}
    if parameters:
        _put_parameters(head, parameters)
    shared = request.shared
    for tensor in outputs:
        _put_output(head, tensor)
        raw = b"" if shared and request.placed(tensor.name) else tensor._as_raw()
        size = <size_t>length(raw)
        total += size
        sizes.push_back(size)
        raws.append(raw)
    if not streamed and not shared and total > _copied_bytes:
        return _in_parts(head, raws, sizes)
    message = _whole(head, raws, sizes, streamed)
    if not streamed and not shared:
        keep_answer(answer, message, raws)
    return message


cdef int _put_parameters(ResponseWriter& head, dict parameters) except -1:
    for name, value in parameters.items():
        if isinstance(value, bool):
            head.parameter_bool(_span(name), value)
        elif isinstance(value, int):
            head.parameter_int64(_span(name), value)
        elif isinstance(value, float):
            head.parameter_double(_span(name), value)
        else:
            head.parameter_string(_span(name), _span(value))
    return 0


cdef int _put_output(ResponseWriter& head, Tensor tensor) except -1:
    cdef vector[int64_t] shape
    cdef tuple sizes = tensor.shape
    shape.reserve(<size_t>len(sizes))
    for size in sizes:
        shape.push_back(<int64_t>size)
    head.output(_span(tensor.name), _span(tensor.dtype.name), shape.data(), shape.size())
    return 0


cdef bytes _whole(ResponseWriter& head, list raws, vector[size_t]& sizes, bint streamed):
    cdef size_t size = head.size(), i
    cdef char* to
    cdef bytes message
    for i in range(sizes.size()):
        size += 1 + varint_size(sizes[i]) + sizes[i]
    message = PyBytes_FromStringAndSize(
        NULL, <Py_ssize_t>(size + (1 + varint_size(size) if streamed else 0))
    )
    to = PyBytes_AS_STRING(message)
    if streamed:
        to = put_prefix(to, kInferResponse, size)
    memcpy(to, head.data(), head.size())
    to += head.size()
    for i in range(sizes.size()):
        to = put_prefix(to, kRawOutputContents, sizes[i])
        to += fill(to, <Py_ssize_t>sizes[i], raws[i])
    return message


cdef list _in_parts(ResponseWriter& head, list raws, vector[size_t]& sizes):
    cdef char prefix[kLongestPrefix]
    cdef size_t i
    cdef list parts = []
    before = PyBytes_FromStringAndSize(head.data(), <Py_ssize_t>head.size())
    for i in range(sizes.size()):
        before += PyBytes_FromStringAndSize(
            prefix, put_prefix(prefix, kRawOutputContents, sizes[i]) - prefix
        )
        if sizes[i] == 0:
            continue
        parts.append(before)
        parts.append(raws[i])
        before = b""
    if before:
        parts.append(before)
    return parts
