# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""What is the same in the requests of a client, and in their answers; see repeated.pyi.

body ─► [RepeatedRequest] ─► InferenceRequest
InferenceResponse ─► [RepeatedAnswer] ─► bytes
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcmp, memcpy

from core.native.arrays cimport fill, has_dtype, length
from core.request cimport InferenceRequest, made_request
from core.response cimport InferenceResponse
from core.tensor cimport Tensor, made_tensor
from frontends.http.native.infer_request cimport OutputForm

cdef enum:
    DATE = 29  # bytes of it
    AFTER_DATE = 4  # of the end of a head


@cython.final
cdef class RepeatedRequest:
    """See repeated.pyi."""

    cdef bint begins(self, bytes body):
        """Whether a body has the same size and the same JSON: then all that `again` reads is there."""
        return PyBytes_GET_SIZE(body) == self._size and not memcmp(
            PyBytes_AS_STRING(body), PyBytes_AS_STRING(self._json), PyBytes_GET_SIZE(self._json)
        )

    cdef InferenceRequest again(self, bytes body):
        """The request in a body that begins so."""
        cdef const char* at = PyBytes_AS_STRING(body) + PyBytes_GET_SIZE(self._json)
        cdef dict inputs = {}
        cdef Tensor like
        cdef Py_ssize_t i, size
        for i in range(len(self._tensors)):
            like = <Tensor>self._tensors[i]
            size = self._sizes[i]
            inputs[like.name] = made_tensor(
                like.name, like.dtype, like.shape, PyBytes_FromStringAndSize(at, size), None
            )
            at += size
        cdef InferenceRequest request = made_request(self._model, inputs)
        request.model_version = self._version
        request.id = self._id
        request.correlation_id = self._correlation_id
        request.flags = self._flags
        request.priority = self._priority
        request.timeout_us = self._timeout_us
        request.outputs = self._outputs
        return request


cdef RepeatedRequest repeated_request(
    InferenceRequest request, OutputForm form, bytes body, Py_ssize_t json_size
):
    """What is to be found again of a request; None if a body with the same JSON may mean another one."""
    cdef RepeatedRequest found
    cdef Tensor tensor
    cdef Py_ssize_t left = PyBytes_GET_SIZE(body) - json_size
    cdef list tensors = [], sizes = []
    if request.shared or request._parameters:
        return None
    for tensor in request.inputs.values():
        size = length(tensor._raw)
        left -= size
        tensors.append(made_tensor(tensor.name, tensor.dtype, tensor.shape, None, None))
        sizes.append(size)
    if left:  # a tensor is in the JSON
        return None
    found = RepeatedRequest.__new__(RepeatedRequest)
    found._size = PyBytes_GET_SIZE(body)
    found._json = body[:json_size]
    found._model = request.model_name
    found._version = request.model_version
    found._id = request.id
    found._correlation_id = request.correlation_id
    found._flags = request.flags
    found._priority = request.priority
    found._timeout_us = request.timeout_us
    found._outputs = request.outputs
    found._tensors = tuple(tensors)
    found._sizes = tuple(sizes)
    found.form = form
    return found


@cython.final
cdef class RepeatedAnswer:
    """See repeated.pyi."""

    cdef bytes again(self, InferenceResponse response, OutputForm form, const char* date):
        """The answer, if all but its date and its numbers is as it was; else None."""
        cdef list outputs = response.outputs
        cdef Py_ssize_t i, count = len(self._tensors), size
        cdef Tensor tensor, like
        if (
            form is not self._form
            or response.model_name is not self._model
            or response.model_version is not self._version
            or response._parameters
            or len(response.id)
            or len(outputs) != count
        ):
            return None
        for i in range(count):
            tensor = <Tensor>outputs[i]
            like = <Tensor>self._tensors[i]
            if (
                tensor.dtype is not like.dtype
                or tensor.name != like.name
                or tensor.shape != like.shape
            ):
                return None
        cdef bytes answer = PyBytes_FromStringAndSize(NULL, self._size)
        cdef char* at = PyBytes_AS_STRING(answer)
        memcpy(at, PyBytes_AS_STRING(self._text), PyBytes_GET_SIZE(self._text))
        memcpy(at + self._date_at, date, DATE)
        at += PyBytes_GET_SIZE(self._text)
        for i in range(count):
            tensor = <Tensor>outputs[i]
            size = self._sizes[i]
            if fill(at, size, _bytes_of(tensor)) != size:
                return None
            at += size
        return answer


cdef inline object _bytes_of(Tensor tensor):
    """What has the bytes of a tensor, without making any where an array has them."""
    if tensor._raw is None and has_dtype(tensor._array, tensor.dtype.numpy):
        return tensor._array
    return tensor._as_raw()


cdef RepeatedAnswer repeated_answer(
    InferenceResponse response, OutputForm form, bytes answer, list parts
):
    """What is to be found again of an answer; None where its JSON depends on more than its tensors.

    answer   the whole of it
    parts    of its body: the JSON, then each tensor
    """
    cdef RepeatedAnswer found
    cdef Tensor tensor
    cdef Py_ssize_t i, body = 0, text
    cdef list tensors = [], sizes = []
    if response._parameters or response.id or form.placed or len(parts) != len(response.outputs) + 1:
        return None
    for part in parts:
        size = length(part)
        body += size
        sizes.append(size)
    for i in range(len(response.outputs)):
        tensor = response.outputs[i]
        if not tensor.dtype.byte_size or not form.binary(tensor.name):
            return None
        tensors.append(made_tensor(tensor.name, tensor.dtype, tensor.shape, None, None))
    text = PyBytes_GET_SIZE(answer) - body
    found = RepeatedAnswer.__new__(RepeatedAnswer)
    found._date_at = text - AFTER_DATE - DATE
    found._text = answer[: text + <Py_ssize_t>sizes[0]]
    found._size = PyBytes_GET_SIZE(answer)
    found._model = response.model_name
    found._version = response.model_version
    found._form = form
    found._tensors = tuple(tensors)
    found._sizes = tuple(sizes[1:])
    return found
