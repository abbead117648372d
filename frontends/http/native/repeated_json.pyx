# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Requests and answers with all their numbers in the JSON; see repeated.pyi.

The texts around the numbers are the same, byte for byte; the numbers are read and written by what does so in
other requests, so that both ways have the same rules.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp, memcpy

from core.native.arrays cimport fill, length
from core.request cimport InferenceRequest
from core.response cimport InferenceResponse
from core.tensor cimport Tensor, made_tensor
from frontends.http.native.infer_request cimport OutputForm, places_of_numbers
from frontends.http.native.infer_response cimport texts_around_numbers
from frontends.http.native.repeated cimport (
    RepeatedAnswer, RepeatedRequest, bytes_of, has_plain_answer, is_plain,
)

from core import dtypes

cdef extern from "lease.hpp" namespace "http_json" nogil:
    cdef cppclass Lease[Scratch]:
        Lease() except +
        Scratch* get()

    cdef cppclass Growth:
        char* room(size_t) except +

cdef extern from "tensor_data.hpp" namespace "http_json" nogil:
    ctypedef int NativeDataType "http_json::DataType"

    const char* read_numbers(const char*, const char*, NativeDataType, size_t, char*)

cdef extern from "json_writer.hpp" namespace "http_json" nogil:
    size_t room_for_numbers(NativeDataType, size_t)
    char* write_array(char*, NativeDataType, const char*, size_t)

cdef extern from "answer.hpp" namespace "answer" nogil:
    const size_t kMostBytes
    char* write_head(char*, const char*, size_t, int64_t, uint64_t, const char*)

cdef enum:
    MOST_START = 96  # bytes of the beginning of a head
    NO_JSON_SIZE = -1

cdef frozenset _NO_NUMBERS = frozenset((dtypes.BYTES, dtypes.FP16, dtypes.BF16))  # in JSON


cdef inline NativeDataType _native(Tensor tensor):
    # Numbers of the configuration's enum begin with 1, else their order is that of http_json::DataType.
    return <NativeDataType>(tensor.dtype.number - 1)


@cython.final
cdef class JsonRequest(RepeatedRequest):
    """texts: around the numbers, one more than there are inputs. sizes: bytes of their elements."""

    cdef tuple _texts, _sizes

    cdef InferenceRequest again(self, object body, const char* data, Py_ssize_t whole):
        cdef const char* at = data
        cdef const char* end = data + whole
        cdef Py_ssize_t i, size, count = len(self._tensors)
        cdef dict inputs = {}
        cdef Tensor like
        cdef bytes raw
        for i in range(count):
            like = <Tensor>self._tensors[i]
            size = self._sizes[i]
            raw = PyBytes_FromStringAndSize(NULL, size)
            at = _behind(at, end, <bytes>self._texts[i])
            if at != NULL:
                at = read_numbers(
                    at, end, _native(like), size // like.dtype.byte_size, PyBytes_AS_STRING(raw)
                )
            if at == NULL:
                return None
            inputs[like.name] = made_tensor(like.name, like.dtype, like.shape, raw, None)
        return self._with(inputs) if _behind(at, end, <bytes>self._texts[count]) == end else None


cdef inline const char* _behind(const char* at, const char* end, bytes text) noexcept:
    """Where the text ends that begins here; NULL if it does not."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(text)
    if end - at < size or memcmp(at, PyBytes_AS_STRING(text), size):
        return NULL
    return at + size


cdef RepeatedRequest json_request(
    InferenceRequest request, OutputForm form, bytes body, uint64_t most_bytes
):
    cdef JsonRequest found
    cdef Tensor tensor
    cdef list places, texts = []
    cdef Py_ssize_t behind = 0
    if not is_plain(request):
        return None
    places = places_of_numbers(body, most_bytes)
    if places is None:
        return None
    for begin, end in places:
        texts.append(body[behind:begin])
        behind = end
    texts.append(body[behind:])
    found = JsonRequest.__new__(JsonRequest)
    found._keep(request, form)
    found._texts = tuple(texts)
    found._sizes = tuple([length((<Tensor>each)._raw) for each in request.inputs.values()])
    return found


@cython.final
cdef class JsonAnswer(RepeatedAnswer):
    """start: of the head. texts: around the numbers. room: for it all, with `largest` for one tensor's bytes."""

    cdef bytes _start
    cdef tuple _texts, _sizes
    cdef size_t _room, _largest

    cdef bytes again(self, InferenceResponse response, OutputForm form, const char* date):
        cdef Lease[Growth] lease
        cdef char* begin
        cdef char* elements
        cdef char* at
        cdef Py_ssize_t i, size, count = len(self._sizes)
        cdef Tensor tensor
        if not self._is_like(response, form):
            return None
        begin = at = lease.get().room(self._room)
        elements = begin + (self._room - self._largest)
        for i in range(count):
            tensor = <Tensor>response.outputs[i]
            size = self._sizes[i]
            if fill(elements, size, bytes_of(tensor)) != size:
                return None
            at = _put(at, <bytes>self._texts[i])
            at = write_array(at, _native(tensor), elements, size // tensor.dtype.byte_size)
        at = _put(at, <bytes>self._texts[count])
        return self._with_head(begin, at - begin, date)

    cdef bytes _with_head(self, const char* body, Py_ssize_t size, const char* date):
        cdef char head[MOST_START + 256]
        cdef char* end = write_head(
            head, PyBytes_AS_STRING(self._start), PyBytes_GET_SIZE(self._start), NO_JSON_SIZE, size, date
        )
        cdef Py_ssize_t head_size = end - head
        cdef bytes answer = PyBytes_FromStringAndSize(NULL, head_size + size)
        memcpy(PyBytes_AS_STRING(answer), head, head_size)
        memcpy(PyBytes_AS_STRING(answer) + head_size, body, size)
        return answer


cdef inline char* _put(char* to, bytes text) noexcept:
    memcpy(to, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
    return to + PyBytes_GET_SIZE(text)


cdef RepeatedAnswer json_answer(InferenceResponse response, OutputForm form, bytes start):
    cdef JsonAnswer found
    cdef Tensor tensor
    cdef list texts, sizes = []
    cdef size_t room = 0, largest = 0, size
    if not has_plain_answer(response, form) or len(start) > MOST_START:
        return None
    for tensor in response.outputs:
        if tensor.dtype in _NO_NUMBERS or form.binary(tensor.name):
            return None
        size = length(bytes_of(tensor))
        sizes.append(size)
        largest = max(largest, size)
        room += room_for_numbers(_native(tensor), size // tensor.dtype.byte_size)
    texts = texts_around_numbers(response, form)
    for text in texts:
        room += <size_t>len(text)
    found = JsonAnswer.__new__(JsonAnswer)
    found._keep(response, form)
    found._start = start
    found._texts = tuple(texts)
    found._sizes = tuple(sizes)
    found._room = room + largest
    found._largest = largest
    return found
