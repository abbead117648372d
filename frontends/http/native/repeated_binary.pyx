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
from frontends.http.native.infer_request cimport OutputForm
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

    cdef InferenceRequest again(self, bytes body):
        cdef const char* at = PyBytes_AS_STRING(body)
        cdef Py_ssize_t json_size = PyBytes_GET_SIZE(self._json), i, size
        cdef dict inputs
        cdef Tensor like
        if PyBytes_GET_SIZE(body) != self._size or memcmp(at, PyBytes_AS_STRING(self._json), json_size):
            return None
        at += json_size
        inputs = {}
        for i in range(len(self._tensors)):
            like = <Tensor>self._tensors[i]
            size = self._sizes[i]
            inputs[like.name] = made_tensor(
                like.name, like.dtype, like.shape, PyBytes_FromStringAndSize(at, size), None
            )
            at += size
        return self._with(inputs)


cdef RepeatedRequest binary_request(
    InferenceRequest request, OutputForm form, bytes body, Py_ssize_t json_size
):
    cdef BinaryRequest found
    cdef Tensor tensor
    cdef Py_ssize_t left = PyBytes_GET_SIZE(body) - json_size
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
    found._size = PyBytes_GET_SIZE(body)
    found._json = body[:json_size]
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
