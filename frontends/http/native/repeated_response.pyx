# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""RepeatedResponse: fast writing of similar responses.

InferenceResponse ─► [RepeatedResponse] ─► bytes
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from core.native.arrays cimport fill, has_dtype, length
from core.response cimport InferenceResponse
from core.tensor cimport Tensor, new_tensor
from frontends.http.native.infer_request cimport OutputForm
from frontends.http.native.infer_response cimport texts_around_slots

from core import dtypes

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef extern from "lease.hpp" namespace "http_json" nogil:
    cdef cppclass Lease[Scratch]:
        Lease() except +
        Scratch* get()

    cdef cppclass Growth:
        char* room(size_t) except +

cdef extern from "json_writer.hpp" namespace "http_json" nogil:
    ctypedef int NativeDataType "http_json::DataType"
    const size_t kSlack

    size_t room_for_numbers(NativeDataType, size_t)
    char* write_array(char*, NativeDataType, const char*, size_t)
    char* write_string(char*, const char*, size_t)
    char* write_integer(char*, int64_t)

cdef extern from "answer.hpp" namespace "answer" nogil:
    const size_t kMostBytes
    char* write_head(char*, const char*, size_t, int64_t, uint64_t, const char*)

cdef enum:
    MOST_HEAD = 512  # bytes of a head
    NO_JSON_SIZE = -1
    MOST_BINARY = 64 * 1024  # bytes of binary tensors; larger ones are not copied into a response
    MOST_NUMBERS = 16 * 1024  # bytes of a tensor in JSON; larger ones are written without the GIL
    DIGITS = 21  # of a size, with a comma
    DATE = 29  # bytes of a date
    MOST_OUTPUTS = 64  # of a kept response

cdef frozenset _NO_NUMBERS = frozenset((dtypes.BYTES, dtypes.FP16, dtypes.BF16))  # in JSON


cdef inline NativeDataType _native(Tensor tensor):
    # The order is the order of http_json::DataType, but the enum of the configuration begins with 1.
    return <NativeDataType>(tensor.dtype.number - 1)


cdef inline object _bytes_of(Tensor tensor):
    """Return the object with the bytes of a tensor: its array if that has its dtype, else tensor.raw."""
    if tensor._raw is None and has_dtype(tensor._array, tensor.dtype.numpy):
        return tensor._array
    return tensor._as_raw()


@cython.final
cdef class RepeatedResponse:
    """A written response, for responses whose outputs have the same names, datatypes and ranks."""

    cdef bytes again(self, InferenceResponse response, OutputForm form, const char* date):
        if not self._is_like(response, form):
            return None
        if self._same is not None and not len(response.id) and self._has_same_shapes(response.outputs):
            return self._again_same(response.outputs, date)
        return self._like(response, date)

    cdef bytes _like(self, InferenceResponse response, const char* date):
        """Return head and body of a similar response; None if its outputs are too large to be copied."""
        cdef Lease[Growth] lease
        cdef list outputs = response.outputs
        cdef Py_ssize_t[MOST_OUTPUTS] sizes
        cdef Py_ssize_t i, count = len(outputs), size, binary = 0, largest = 0, id_size = 0
        cdef size_t room = self._text_size + kSlack
        cdef const char* id = NULL
        cdef const char* is_binary = PyBytes_AS_STRING(self._binary)
        cdef char* begin
        cdef char* at
        cdef char* elements
        cdef Tensor tensor
        for i in range(count):
            tensor = <Tensor>outputs[i]
            size = sizes[i] = length(_bytes_of(tensor))
            room += <size_t>DIGITS * (len(tensor.shape) + 1)
            if is_binary[i]:
                binary += size
            else:
                room += room_for_numbers(_native(tensor), size // tensor.dtype.byte_size)
                largest = max(largest, size)
        if binary > MOST_BINARY or largest > MOST_NUMBERS or (self._has_binary and not binary):
            return None
        if response.id:
            id = PyUnicode_AsUTF8AndSize(response.id, &id_size)
            room += 6 * <size_t>id_size + 8
        begin = lease.get().room(room + largest)
        elements = begin + room
        at = _put(begin, <bytes>self._texts[0])
        if id != NULL:
            memcpy(at, '"id":', 5)
            at = write_string(at + 5, id, id_size)
            at[0] = c","
            at += 1
        for i in range(count):
            tensor = <Tensor>outputs[i]
            at = _put_shape(_put(at, <bytes>self._texts[2 * i + 1]), tensor.shape)
            at = _put(at, <bytes>self._texts[2 * i + 2])
            size = sizes[i]
            if is_binary[i]:
                at = write_integer(at, size)
            else:
                if fill(elements, size, _bytes_of(tensor)) != size:
                    return None
                at = write_array(at, _native(tensor), elements, size // tensor.dtype.byte_size)
        at = _put(at, <bytes>self._texts[2 * count + 1])
        return self._whole(begin, at - begin, outputs, binary, date)

    cdef bint _is_like(self, InferenceResponse response, OutputForm form):
        """Return whether a response differs only in its slots; `form` must be the same object."""
        cdef list outputs = response.outputs
        cdef Py_ssize_t i, count = len(self._tensors)
        cdef Tensor tensor, like
        if (
            form is not self._form
            or response.model_name is not self._model
            or response.model_version is not self._version
            or response._parameters
            or len(outputs) != count
        ):
            return False
        for i in range(count):
            tensor = <Tensor>outputs[i]
            like = <Tensor>self._tensors[i]
            if (
                tensor.dtype is not like.dtype
                or tensor.name != like.name
                or len(tensor.shape) != len(like.shape)
            ):
                return False
        return True

    cdef bint _has_same_shapes(self, list outputs):
        cdef Py_ssize_t i
        for i in range(len(self._tensors)):
            if (<Tensor>outputs[i]).shape != (<Tensor>self._tensors[i]).shape:
                return False
        return True

    cdef bytes _again_same(self, list outputs, const char* date):
        """Return head and body of a response that differs only in date and outputs; None for another size."""
        cdef bytes answer = PyBytes_FromStringAndSize(NULL, self._same_size)
        cdef char* at = PyBytes_AS_STRING(answer)
        cdef Py_ssize_t i, size, left = self._same_size - PyBytes_GET_SIZE(self._same)
        memcpy(at, PyBytes_AS_STRING(self._same), PyBytes_GET_SIZE(self._same))
        memcpy(at + self._date_at, date, DATE)
        at += PyBytes_GET_SIZE(self._same)
        for i in range(len(outputs)):
            size = fill(at, left, _bytes_of(<Tensor>outputs[i]))
            at += size
            left -= size
        return None if left else answer

    cdef bytes _whole(
        self, const char* json, Py_ssize_t json_size, list outputs, Py_ssize_t binary, const char* date
    ):
        """Return head, JSON and binary tensors as one bytes object.

        binary   size of all binary tensors in bytes
        """
        cdef char[MOST_HEAD] head
        cdef Py_ssize_t i, size = write_head(
            head, PyBytes_AS_STRING(self._start), PyBytes_GET_SIZE(self._start),
            json_size if self._has_binary else NO_JSON_SIZE, json_size + binary, date,
        ) - head
        cdef bytes answer = PyBytes_FromStringAndSize(NULL, size + json_size + binary)
        cdef char* at = PyBytes_AS_STRING(answer)
        memcpy(at, head, size)
        memcpy(at + size, json, json_size)
        at += size + json_size
        for i in range(len(outputs)):
            if PyBytes_AS_STRING(self._binary)[i]:
                size = fill(at, binary, _bytes_of(<Tensor>outputs[i]))
                at += size
                binary -= size
        return answer


cdef inline char* _put(char* to, bytes text) noexcept:
    memcpy(to, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
    return to + PyBytes_GET_SIZE(text)


cdef inline char* _put_shape(char* to, tuple shape) except NULL:
    cdef Py_ssize_t i
    to[0] = c"["
    to += 1
    for i in range(len(shape)):
        if i:
            to[0] = c","
            to += 1
        to = write_integer(to, <int64_t>shape[i])
    to[0] = c"]"
    return to + 1


cdef RepeatedResponse repeated_response(
    InferenceResponse response, OutputForm form, bytes start, bytes answer
):
    cdef RepeatedResponse found
    cdef Tensor tensor
    cdef list texts, binary = []
    cdef bint is_binary
    cdef Py_ssize_t size
    if response._parameters or form.placed or form.encoded is not None or len(response.outputs) > MOST_OUTPUTS:
        return None
    for tensor in response.outputs:
        is_binary = form.binary(tensor.name)
        if not tensor.dtype.byte_size or (not is_binary and tensor.dtype in _NO_NUMBERS):
            return None
        binary.append(is_binary)
    texts = texts_around_slots(response, form)
    found = RepeatedResponse.__new__(RepeatedResponse)
    found._model = response.model_name
    found._version = response.model_version
    found._form = form
    found._tensors = tuple([
        new_tensor(tensor.name, tensor.dtype, tensor.shape, None, None) for tensor in response.outputs
    ])
    found._texts = tuple(texts)
    found._text_size = sum(map(len, texts))
    found._binary = bytes(binary)
    found._has_binary = any(binary)
    found._start = start
    if all(binary) and not response.id:
        size = sum([length(_bytes_of(tensor)) for tensor in response.outputs])
        found._same = answer[: len(answer) - size]
        found._same_size = len(answer)
        found._date_at = answer.index(b"\r\n\r\n") - DATE
    return found
