# cython: boundscheck=False, wraparound=False
"""InferenceResponse → v2 JSON and binary outputs.

split ─► [write] ─► json_writer.hpp ─► parts.  The bytes of a binary output are not touched.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t

from core.response cimport InferenceResponse
from core.tensor cimport Tensor
from frontends.http.native.infer_request cimport OutputForm

import orjson

from core.dtypes import BYTES
from core.errors import invalid
from core.native.strings import encode
from frontends.http.background import TakesLong
from frontends.http.codec.base64_data import encoded

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char*, Py_ssize_t) except NULL
    char* bytes_start "PyBytes_AS_STRING"(PyObject*)
    int _PyBytes_Resize(PyObject** data, Py_ssize_t size) except -1

cdef extern from "lease.hpp" namespace "http_json" nogil:
    cdef cppclass Lease[Scratch]:
        Lease() except +
        Scratch* get()

    cdef cppclass Growth:
        const char* data()
        size_t size()
        char* room(size_t) except +
        void end_at(char*)
        void clear()

cdef extern from "json_writer.hpp" namespace "http_json" nogil:
    ctypedef int NativeDataType "http_json::DataType"
    const NativeDataType kBytes "http_json::DataType::kBytes"
    const NativeDataType kFp16 "http_json::DataType::kFp16"
    const NativeDataType kBf16 "http_json::DataType::kBf16"
    const size_t kSlack

    size_t room_for_numbers(NativeDataType, size_t)
    char* write_array(char*, NativeDataType, const char*, size_t)
    size_t room_for_strings(const char*, size_t, size_t)
    char* write_strings(char*, const char*, size_t, size_t)
    char* write_string(char*, const char*, size_t)
    char* write_word(char*, const char*, size_t)
    char* write_integer(char*, int64_t)


cdef enum:
    LARGE = 65536  # bytes of a tensor from which on writing takes longer than releasing the GIL
    AT_ONCE = 256 * 1024  # bytes of a tensor whose text takes milliseconds
    MANY = 16 * 1024  # strings that one call encodes, with the GIL


cpdef tuple write(InferenceResponse response, OutputForm form):
    """Return (size of the JSON, or 0 if no bytes of binary outputs follow it; buffers of the body)."""
    return _write_answer(response, form, False)


cpdef tuple write_at_once(InferenceResponse response, OutputForm form):
    """Return the result of `write`. Raises TakesLong for large outputs, which another thread must write."""
    return _write_answer(response, form, True)


cdef tuple _write_answer(InferenceResponse response, OutputForm form, bint at_once):
    cdef Lease[Growth] lease
    cdef Growth* text = lease.get()
    cdef list parts = [], tail = []
    cdef Py_ssize_t json_size = _put_answer(text, response, form, parts, tail, None, at_once)
    json_size += <Py_ssize_t>text.size()
    parts.append(PyBytes_FromStringAndSize(text.data(), <Py_ssize_t>text.size()))
    if not tail:
        return 0, parts
    parts += tail
    return json_size, parts


cdef list texts_around_slots(InferenceResponse response, OutputForm form):
    """Return the texts of a response's JSON before, between and after its slots, as bytes."""
    cdef Lease[Growth] lease
    cdef Growth* text = lease.get()
    cdef list places = [0]
    _put_answer(text, response, form, [], [], places, False)
    cdef bytes whole = PyBytes_FromStringAndSize(text.data(), <Py_ssize_t>text.size())
    return [whole[begin:end] for begin, end in zip(places, [*places[1:], len(whole)])]


cdef Py_ssize_t _put_answer(
    Growth* text, InferenceResponse response, OutputForm form, list parts, list tail, list places,
    bint at_once,
) except -1:
    """Write the JSON to the end of `text`. Return the number of bytes moved to `parts`.

    parts    gets large arrays, and the text before each of them
    tail     gets the binary tensors
    places   if not None, gets the position of each slot in `text`; the slots are not written then
    at_once  raise TakesLong instead of writing a large array
    """
    cdef Py_ssize_t given = 0
    cdef const char* comma = "["
    _put(text, "{", 1)
    if places is not None:
        places.append(<Py_ssize_t>text.size())
    elif response.id:
        _put(text, '"id":', 5)
        _put_text(text, response.id)
        _put(text, ",", 1)
    _put(text, '"model_name":', 13)
    _put_text(text, response.model_name)
    _put(text, ',"model_version":"', 18)
    _put_integer(text, response.model_version)
    _put(text, '"', 1)
    if response._parameters:
        _put(text, ',"parameters":', 14)
        _put_bytes(text, orjson.dumps(response.parameters))
    _put(text, ',"outputs":', 11)
    for item in response.outputs:
        _put(text, comma, 1)
        comma = ","
        given += _put_output(text, <Tensor>item, form, parts, tail, places, at_once)
    if comma[0] == c"[":
        _put(text, "[", 1)
    _put(text, "]}", 2)
    return given


cdef Py_ssize_t _put_output(
    Growth* text, Tensor tensor, OutputForm form, list parts, list tail, list places, bint at_once
) except -1:
    """Write one output; arguments and result as in `_put_answer`."""
    cdef Py_ssize_t given = 0
    _put_description(text, tensor, places)
    if form.placed and tensor.name in form.placed:
        _put(text, "}", 1)
    elif form.encoded is not None and tensor.name in form.encoded:
        _put(text, ',"parameters":{"content_type":"base64"},"data":', 47)
        _put_bytes(text, _in_base64(tensor, at_once))
        _put(text, "}", 1)
    elif form.binary(tensor.name):
        _put(text, ',"parameters":{"binary_data_size":', 34)
        raw = _raw(tensor, at_once)
        size = _size(raw)
        if places is None:
            _put_integer(text, size)
        else:
            places.append(<Py_ssize_t>text.size())
        _put(text, "}}", 2)
        if size:
            tail.append(raw)
    else:
        _put(text, ',"data":', 8)
        if places is None:
            given = _put_data(text, tensor, parts, at_once)
        else:
            places.append(<Py_ssize_t>text.size())
        _put(text, "}", 1)
    return given


def write_data(Tensor tensor not None):
    """Return the elements of a tensor as a flat JSON array, in bytes.

    Raises CoreError for FP16 and BF16, ValueError if the tensor's bytes do not fit its shape.
    """
    cdef Lease[Growth] lease
    cdef Growth* text = lease.get()
    cdef list parts = []
    _put_data(text, tensor, parts, False)
    if parts:
        return parts[1]
    return PyBytes_FromStringAndSize(text.data(), <Py_ssize_t>text.size())


cdef bytes _in_base64(Tensor tensor, bint at_once):
    """Return the `data` of an output in base64, a JSON list. Raises TakesLong if large and `at_once`."""
    if at_once and _size(_raw(tensor, at_once)) > LARGE:
        raise TakesLong
    return orjson.dumps(encoded(tensor))


cdef inline int _put(Growth* text, const char* word, size_t size) except -1:
    text.end_at(write_word(text.room(size), word, size))
    return 0


cdef int _put_bytes(Growth* text, bytes data) except -1:
    return _put(text, PyBytes_AS_STRING(data), <size_t>PyBytes_GET_SIZE(data))


cdef int _put_text(Growth* text, str value) except -1:
    cdef Py_ssize_t size = 0
    cdef const char* data = PyUnicode_AsUTF8AndSize(value, &size)
    text.end_at(write_string(text.room(<size_t>size * 6 + 2), data, <size_t>size))
    return 0


cdef int _put_integer(Growth* text, int64_t value) except -1:
    text.end_at(write_integer(text.room(20 + kSlack), value))
    return 0


cdef int _put_description(Growth* text, Tensor tensor, list places) except -1:
    """Write name, datatype and shape of an output, without the closing brace. If `places` is not None, add
    the position of the shape to it instead of writing the shape.
    """
    cdef const char* comma = "["
    _put(text, '{"name":', 8)
    _put_text(text, tensor.name)
    _put(text, ',"datatype":', 12)
    _put_text(text, tensor.dtype.name)
    _put(text, ',"shape":', 9)
    if places is not None:
        places.append(<Py_ssize_t>text.size())
        return 0
    for size in tensor.shape:
        _put(text, comma, 1)
        _put_integer(text, size)
        comma = ","
    if not tensor.shape:
        _put(text, "[", 1)
    return _put(text, "]", 1)


cdef inline object _raw(Tensor tensor, bint at_once):
    """Return the bytes of a tensor, encoded if necessary. With `at_once`, may raise TakesLong."""
    return tensor._raw if tensor._raw is not None else _made(tensor, at_once)


cdef object _made(Tensor tensor, bint at_once):
    """Return tensor.raw, created from its array. Many strings are encoded in pieces, so that other threads
    can run; with `at_once` they raise TakesLong.
    """
    if tensor.dtype is not BYTES or tensor._array is None or tensor._array.size <= MANY:
        return tensor.raw
    if at_once:
        raise TakesLong
    elements = tensor._array.reshape(-1)
    tensor._raw = b"".join([encode(elements[at : at + MANY]) for at in range(0, len(elements), MANY)])
    return tensor._raw


cdef Py_ssize_t _size(object raw) except -1:
    """Return the size of a contiguous buffer in bytes."""
    cdef Py_buffer view
    cdef Py_ssize_t size
    if type(raw) is bytes:
        return PyBytes_GET_SIZE(raw)
    PyObject_GetBuffer(raw, &view, PyBUF_SIMPLE)
    size = view.len
    PyBuffer_Release(&view)
    return size


cdef Py_ssize_t _put_data(Growth* text, Tensor tensor, list parts, bint at_once) except -1:
    """Write the elements as a JSON array to `text`. If they are large, move `text` and the array to `parts`.

    Return the number of bytes added to `parts`. Raises CoreError for FP16 and BF16, ValueError for a wrong
    size, and TakesLong with `at_once`.
    """
    # The order is the order of http_json::DataType, but the enum of the configuration begins with 1.
    cdef NativeDataType type = <NativeDataType>(tensor.dtype.number - 1)
    cdef Py_buffer view
    cdef size_t count = 1, room
    cdef Py_ssize_t size
    for dimension in tensor.shape:
        count *= <size_t>dimension
    if type == kFp16 or type == kBf16:
        raise invalid(
            f"sending {tensor.dtype} data via JSON is not supported. Please use the binary data "
            "format for output"
        )
    PyObject_GetBuffer(_raw(tensor, at_once), &view, PyBUF_SIMPLE)
    try:
        if view.len > LARGE:
            if at_once and (view.len > AT_ONCE or parts):
                raise TakesLong
            data = _large(tensor, type, &view, count)
            size = <Py_ssize_t>text.size()
            parts.append(PyBytes_FromStringAndSize(text.data(), size))
            parts.append(data)
            text.clear()
            return size + PyBytes_GET_SIZE(data)
        room = _room(tensor, type, &view, count)
        text.end_at(_write(text.room(room), type, &view, count))
        return 0
    finally:
        PyBuffer_Release(&view)


cdef bytes _large(Tensor tensor, NativeDataType type, Py_buffer* view, size_t count):
    """Return the elements as a JSON array, written without the GIL."""
    cdef size_t room = _room(tensor, type, view, count)
    # The bound is generous, but untouched pages take no memory, and the rest is freed at the end.
    cdef PyObject* data = new_bytes(NULL, <Py_ssize_t>room)
    cdef char* begin = bytes_start(data)
    cdef char* end
    with nogil:
        end = _write(begin, type, view, count)
    _PyBytes_Resize(&data, end - begin)
    found = <bytes>data
    Py_DECREF(found)  # the reference in `data`
    return found


cdef size_t _room(Tensor tensor, NativeDataType type, Py_buffer* view, size_t count) except 0:
    """Return an upper bound of the array's size in bytes. Raises ValueError if the tensor has not `count`
    elements.
    """
    cdef size_t room
    cdef bint right
    if type == kBytes:
        with nogil:
            room = room_for_strings(<const char*>view.buf, <size_t>view.len, count)
        right = room != 0
    else:
        room = room_for_numbers(type, count)
        right = <size_t>view.len == count * <size_t>tensor.dtype.byte_size
    if not right:
        raise ValueError(f"{tensor} has {view.len} bytes, which are not {count} elements")
    return room


cdef inline char* _write(char* to, NativeDataType type, Py_buffer* view, size_t count) noexcept nogil:
    if type == kBytes:
        return write_strings(to, <const char*>view.buf, <size_t>view.len, count)
    return write_array(to, type, <const char*>view.buf, count)
