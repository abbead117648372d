# cython: boundscheck=False, wraparound=False
"""v2 JSON and binary tensors → InferenceRequest.

bytes ─► infer_request.hpp ─► [read] ─► InferenceRequest
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int64_t, uint64_t
from libcpp cimport bool as boolean

from core.dtypes cimport DataType
from core.request cimport InferenceRequest, RequestedOutput
from core.tensor cimport Tensor
from frontends.http.native.infer_json cimport (
    Input, Memory, Output, Parameter, Request, RequestReader, Text, kBinary, kData, kInteger, kReal, kText, Lease,
)
from frontends.shared.native.decoding cimport name_of, shape_of, text_of

from core import dtypes
from core.errors import CoreError
from core.request import SEQUENCE_END, SEQUENCE_START

cdef extern from "Python.h":
    object PySequence_GetSlice(object sequence, Py_ssize_t start, Py_ssize_t end)

cdef extern from "json_cursor.hpp" namespace "http_json" nogil:
    uint64_t word_key(Text)

cdef enum:
    LARGE = 65536  # bytes of JSON from which on reading takes longer than releasing the GIL
    MOST_TEXT = 4 * 1024 * 1024  # limit of ids, names and parameters in bytes, as in json_value.pyx
    NAMES = 256  # size of the cache of names, a power of two
    LONGEST_NAME = 64  # bytes of a name in the cache

COPIED_BYTES = COPIED_UP_TO
cdef tuple _DATATYPES = dtypes.ALL  # the order is that of http_json::DataType
cdef int _START = SEQUENCE_START
cdef int _END = SEQUENCE_END
cdef frozenset _NONE = frozenset()
cdef list _names = [None] * NAMES  # str or None at each place


cdef class OutputForm:
    """The form of each output in a response: JSON, base64 in JSON, binary, or shared memory."""

    def __init__(self, default=False, listed=None, placed=None, encoded=None):
        self.default = default
        self.listed = {} if listed is None else listed
        self.placed = set() if placed is None else placed
        self.encoded = encoded

    cpdef bint binary(self, str output):
        """Return `listed[output]`, or `default` for another output; True for binary."""
        if self.listed:
            return self.listed.get(output, self.default)
        return self.default


# Shared by all requests whose outputs have one form; these objects never change.
cdef OutputForm _IN_JSON = OutputForm(False, {}, _NONE)
cdef OutputForm _IN_BINARY = OutputForm(True, {}, _NONE)


# Requests ---------------------------------------------------------------------------------


cpdef tuple read(
    str model, int64_t version, object body, Py_ssize_t json_size, uint64_t most_bytes, object regions
):
    """Return (request, form of its outputs); None if `parse_document` must parse the body."""
    cdef Py_buffer view
    cdef Lease[Request] lease
    PyObject_GetBuffer(body, &view, PyBUF_SIMPLE)
    try:
        return _read(model, version, body, &view, json_size, most_bytes, regions, lease.get())
    finally:
        PyBuffer_Release(&view)


cdef tuple _read(
    str model, int64_t version, object body, Py_buffer* view, Py_ssize_t json_size, uint64_t most_bytes,
    object regions, Request* found,
):
    cdef list taken = []  # keeps the elements of JSON tensors alive
    cdef Memory memory
    cdef boolean understood
    cdef const char* json = <const char*>view.buf
    if json_size < 0 or json_size > view.len:
        raise ValueError(f"JSON of {json_size} bytes in a body of {view.len}")
    memory.context = <void*>taken
    memory.take = take_elements
    if json_size >= LARGE:
        with nogil:
            understood = RequestReader(json, json_size, most_bytes, memory, found[0]).read()
    else:
        understood = RequestReader(json, json_size, most_bytes, memory, found[0]).read()
    if not understood or json_size > MOST_TEXT and _text_bytes(found) > MOST_TEXT:
        return None
    cdef InferenceRequest request = InferenceRequest.__new__(InferenceRequest)
    request.model_name = model
    request.model_version = version
    request.id = _text(found.id)
    request.correlation_id = 0
    request.priority = found.priority
    request.timeout_us = found.timeout_us
    request.rows = 1
    request.outputs = ()
    _set_sequence(request, found)
    if found.parameters.size():
        _set_parameters(request, found)
    cdef OutputForm form = _IN_BINARY if found.binary_output else _IN_JSON
    try:
        if not _set_inputs(request, body, view, json_size, regions, found):
            return None
        if found.outputs.size():
            form = _set_outputs(request, regions, found)
            if form is None:
                return None
    except CoreError:  # of shared memory; `parse_document` may find another error before it
        return None
    return request, form


cdef size_t _text_bytes(Request* found) noexcept:
    """Return the size in bytes of all texts of a request that become str: id, names, keys, values."""
    cdef size_t i, size = found.id.size + found.sequence_name.size
    for i in range(found.parameters.size()):
        size += found.parameters[i].key.size + found.parameters[i].text.size
    for i in range(found.inputs.size()):
        size += found.inputs[i].name.size + found.inputs[i].place.region.size
    for i in range(found.outputs.size()):
        size += found.outputs[i].name.size + found.outputs[i].place.region.size
    return size


cdef char* take_elements(void* context, size_t size, void** memory) noexcept with gil:
    """Allocate `size` bytes for the elements of a tensor, kept by the list `context`. NULL on failure."""
    try:
        elements = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
        (<list>context).append(elements)
    except MemoryError:
        return NULL
    memory[0] = <void*>elements
    return PyBytes_AS_STRING(elements)


cdef inline str _text(Text text):
    return text_of(text.data, text.size)


cdef str _name(Text text):
    """Return the str of a name. Names up to LONGEST_NAME bytes come from a cache if possible."""
    if text.size == 0 or text.size > LONGEST_NAME:
        return _text(text)
    cdef Text ending
    ending.data = text.data + (text.size - 8 if text.size > 8 else 0)
    ending.size = text.size if text.size < 8 else 8
    cdef uint64_t key = (word_key(ending) ^ text.size) * <uint64_t>0x9E3779B97F4A7C15
    return name_of(_names, <size_t>(key >> 56), text.data, text.size)


cdef int _set_sequence(InferenceRequest request, Request* found) except -1:
    if found.sequence_named:
        request.correlation_id = _text(found.sequence_name)
    elif found.sequence_id:
        request.correlation_id = found.sequence_id
    request.flags = (_START if found.sequence_start else 0) | (_END if found.sequence_end else 0)
    return 0


cdef int _set_parameters(InferenceRequest request, Request* found) except -1:
    cdef size_t i
    cdef Parameter* one
    cdef dict parameters = request.parameters
    for i in range(found.parameters.size()):
        one = &found.parameters[i]
        if one.kind == kText:
            value = _text(one.text)
        elif one.kind == kInteger:
            value = one.integer
        elif one.kind == kReal:
            value = one.real
        else:
            value = one.integer != 0
        parameters[_name(one.key)] = value
    return 0


cdef bint _set_inputs(
    InferenceRequest request, object body, Py_buffer* view, Py_ssize_t at, object regions,
    Request* found,
) except -1:
    """Set the inputs of `request`. Return False for repeated names, for memory on a device, and if the binary
    tensors do not exactly fill the body. Raises CoreError for shared memory.
    """
    cdef dict inputs = {}
    cdef Tensor tensor
    cdef Input* one
    cdef size_t i
    for i in range(found.inputs.size()):
        one = &found.inputs[i]
        tensor = Tensor.__new__(Tensor)
        tensor.name = _name(one.name)
        tensor.dtype = <DataType>_DATATYPES[<Py_ssize_t>one.type]
        tensor.shape = shape_of(found.dimensions.data() + one.first_dimension, one.dimension_count)
        if one.source == kData:
            tensor._raw = <object>one.memory if one.memory != NULL else b""
        elif one.source == kBinary:
            if one.size > <uint64_t>(view.len - at):
                return False
            if one.size <= COPIED_UP_TO:
                tensor._raw = PyBytes_FromStringAndSize(
                    <const char*>view.buf + at, <Py_ssize_t>one.size
                )
            else:
                tensor._raw = part_of_body(body, at, <Py_ssize_t>one.size)
            at += <Py_ssize_t>one.size
        else:
            tensor._raw = regions.read(
                _text(one.place.region), one.place.offset, one.place.byte_size, tensor.dtype
            )
            if not PyObject_CheckBuffer(tensor._raw):  # on a device
                return False
            request.shared = True
        inputs[tensor.name] = tensor
    request.inputs = inputs
    return at == view.len and <size_t>len(inputs) == found.inputs.size()


cdef object part_of_body(object body, Py_ssize_t at, Py_ssize_t size):
    part = PySequence_GetSlice(PyMemoryView_FromObject(body), at, at + size)
    return part if PyMemoryView_GET_BUFFER(part).readonly else part.toreadonly()


cdef OutputForm _set_outputs(InferenceRequest request, object regions, Request* found):
    """Set the outputs of `request`; return their form, None for a repeated name. Raises CoreError."""
    cdef size_t i, count = found.outputs.size(), binary = 0
    cdef Output* one
    cdef RequestedOutput output
    cdef tuple outputs = PyTuple_New(<Py_ssize_t>count)
    cdef dict listed = {}
    cdef set placed = None
    for i in range(count):
        one = &found.outputs[i]
        output = RequestedOutput.__new__(RequestedOutput)
        output.name = _name(one.name)
        output.class_count = one.class_count
        output.memory = None
        if one.shared:
            output.memory = regions.view(
                _text(one.place.region), one.place.offset, one.place.byte_size
            )
            placed = set() if placed is None else placed
            placed.add(output.name)
            request.shared = True
        binary += one.binary
        listed[output.name] = bool(one.binary)
        Py_INCREF(output)  # PyTuple_SET_ITEM takes a reference
        PyTuple_SET_ITEM(outputs, <Py_ssize_t>i, output)
    if <size_t>len(listed) != count:
        return None
    request.outputs = outputs
    if placed is not None:
        return OutputForm(found.binary_output, listed, placed)
    # The response has only these outputs.
    if binary == count:
        return _IN_BINARY
    if binary == 0:
        return _IN_JSON
    return OutputForm(found.binary_output, listed, _NONE)
