# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""What is the same in the requests of a client, and in their answers; see repeated.pyi.

body ─► [RepeatedRequest] ─► InferenceRequest
InferenceResponse ─► [RepeatedAnswer] ─► bytes

Where the numbers are, and how they are read and written, is the business of repeated_binary and repeated_json.
"""

from core.native.arrays cimport has_dtype
from core.request cimport InferenceRequest, made_request
from core.response cimport InferenceResponse
from core.tensor cimport Tensor, made_tensor
from frontends.http.native.infer_request cimport OutputForm


cdef class RepeatedRequest:
    """See repeated.pyi."""

    cdef _keep(self, InferenceRequest request, OutputForm form):
        self._model = request.model_name
        self._version = request.model_version
        self._id = request.id
        self._correlation_id = request.correlation_id
        self._flags = request.flags
        self._priority = request.priority
        self._timeout_us = request.timeout_us
        self._outputs = request.outputs
        self._tensors = tuple([_described(each) for each in request.inputs.values()])
        self.form = form

    cdef InferenceRequest again(self, object body, const char* data, Py_ssize_t size):
        """The request in a body, which has that data, if it differs in numbers alone; None for another."""
        raise NotImplementedError

    cdef InferenceRequest _with(self, dict inputs):
        """The same request with these inputs."""
        cdef InferenceRequest request = made_request(self._model, inputs)
        request.model_version = self._version
        request.id = self._id
        request.correlation_id = self._correlation_id
        request.flags = self._flags
        request.priority = self._priority
        request.timeout_us = self._timeout_us
        request.outputs = self._outputs
        return request


cdef class RepeatedAnswer:
    """See repeated.pyi."""

    cdef _keep(self, InferenceResponse response, OutputForm form):
        self._model = response.model_name
        self._version = response.model_version
        self._form = form
        self._tensors = tuple([_described(each) for each in response.outputs])

    cdef bint _is_like(self, InferenceResponse response, OutputForm form):
        """Whether all but the numbers of an answer would be as it was."""
        cdef list outputs = response.outputs
        cdef Py_ssize_t i, count = len(self._tensors)
        cdef Tensor tensor, like
        if (
            form is not self._form
            or response.model_name is not self._model
            or response.model_version is not self._version
            or response._parameters
            or len(response.id)
            or len(outputs) != count
        ):
            return False
        for i in range(count):
            tensor = <Tensor>outputs[i]
            like = <Tensor>self._tensors[i]
            if (
                tensor.dtype is not like.dtype
                or tensor.name != like.name
                or tensor.shape != like.shape
            ):
                return False
        return True

    cdef bytes again(self, InferenceResponse response, OutputForm form, const char* date):
        """The whole answer, if it differs in date and numbers alone; else None."""
        raise NotImplementedError


cdef Tensor _described(Tensor tensor):
    return made_tensor(tensor.name, tensor.dtype, tensor.shape, None, None)


cdef bint is_plain(InferenceRequest request):
    return not (request.shared or request._parameters)


cdef bint has_plain_answer(InferenceResponse response, OutputForm form):
    return not (response._parameters or response.id or form.placed)


cdef object bytes_of(Tensor tensor):
    if tensor._raw is None and has_dtype(tensor._array, tensor.dtype.numpy):
        return tensor._array
    return tensor._as_raw()
