# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Requests and answers with all their tensors in binary; see repeated.pyi.

The JSON is the same, byte for byte, and so all sizes are.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcmp, memcpy

from core.native.arrays cimport fill, length
from core.request cimport InferenceRequest
from core.response cimport InferenceResponse
from core.tensor cimport Tensor, made_tensor
from frontends.http.native.infer_request cimport COPIED_UP_TO, OutputForm, part_of_body
from frontends.http.native.repeated cimport (
    RepeatedAnswer, RepeatedRequest, bytes_of, has_plain_answer, is_plain,
)

cdef enum:
    DATE = 29  # bytes of it
    AFTER_DATE = 4  # of the end of a head


@cython.final
cdef class BinaryRequest(RepeatedRequest):
    """size: bytes of the body. json: before its tensors, which have `sizes` bytes."""

    cdef Py_ssize_t _size
    cdef bytes _json
    cdef tuple _sizes

    cdef InferenceRequest again(self, object body, const char* data, Py_ssize_t whole):
        cdef Py_ssize_t at = PyBytes_GET_SIZE(self._json), i, size
        cdef bint copies = type(body) is bytes  # a small one
        cdef dict inputs
        cdef Tensor like
        if whole != self._size or memcmp(data, PyBytes_AS_STRING(self._json), at):
            return None
        inputs = {}
        for i in range(len(self._tensors)):
            like = <Tensor>self._tensors[i]
            size = self._sizes[i]
            if copies or size <= COPIED_UP_TO:
                raw = PyBytes_FromStringAndSize(data + at, size)
            else:
                raw = part_of_body(body, at, size)
            inputs[like.name] = made_tensor(like.name, like.dtype, like.shape, raw, None)
            at += size
        return self._with(inputs)


cdef RepeatedRequest binary_request(
    InferenceRequest request, OutputForm form, bytes json, Py_ssize_t whole
):
    cdef BinaryRequest found
    cdef Tensor tensor
    cdef Py_ssize_t left = whole - PyBytes_GET_SIZE(json)
    cdef list sizes = []
    if not is_plain(request):
        return None
    for tensor in request.inputs.values():
        size = length(tensor._raw)
        left -= size
        sizes.append(size)
    if left:  # a tensor is in the JSON
        return None
    found = BinaryRequest.__new__(BinaryRequest)
    found._keep(request, form)
    found._size = whole
    found._json = json
    found._sizes = tuple(sizes)
    return found


@cython.final
cdef class BinaryAnswer(RepeatedAnswer):
    """text: head and JSON, in which the date is at `date_at`. sizes: of the tensors. size: of it all."""

    cdef bytes _text
    cdef Py_ssize_t _date_at, _size
    cdef tuple _sizes

    cdef bytes again(self, InferenceResponse response, OutputForm form, const char* date):
        cdef Py_ssize_t i, size
        cdef Tensor tensor
        if not self._is_like(response, form):
            return None
        cdef bytes answer = PyBytes_FromStringAndSize(NULL, self._size)
        cdef char* at = PyBytes_AS_STRING(answer)
        memcpy(at, PyBytes_AS_STRING(self._text), PyBytes_GET_SIZE(self._text))
        memcpy(at + self._date_at, date, DATE)
        at += PyBytes_GET_SIZE(self._text)
        for i in range(len(self._sizes)):
            tensor = <Tensor>response.outputs[i]
            size = self._sizes[i]
            if fill(at, size, bytes_of(tensor)) != size:
                return None
            at += size
        return answer


cdef RepeatedAnswer binary_answer(
    InferenceResponse response, OutputForm form, bytes answer, list parts
):
    cdef BinaryAnswer found
    cdef Tensor tensor
    cdef Py_ssize_t body = 0, text
    cdef list sizes = []
    if not has_plain_answer(response, form) or len(parts) != len(response.outputs) + 1:
        return None
    for part in parts:
        size = length(part)
        body += size
        sizes.append(size)
    for tensor in response.outputs:
        if not tensor.dtype.byte_size or not form.binary(tensor.name):
            return None
    text = PyBytes_GET_SIZE(answer) - body
    found = BinaryAnswer.__new__(BinaryAnswer)
    found._keep(response, form)
    found._date_at = text - AFTER_DATE - DATE
    found._text = answer[: text + <Py_ssize_t>sizes[0]]
    found._size = PyBytes_GET_SIZE(answer)
    found._sizes = tuple(sizes[1:])
    return found
