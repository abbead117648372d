import cython

from core.request cimport InferenceRequest
from core.response cimport InferenceResponse
from core.tensor cimport Tensor
from frontends.http.native.infer_request cimport OutputForm


cdef class RepeatedRequest:
    """Written once, by `_keep`.

    tensors  the inputs that it was read as, without their numbers; what else the request said stands beside them
    form     of the answer
    """

    cdef str _model, _id
    cdef long long _version
    cdef object _correlation_id, _priority, _timeout_us
    cdef int _flags
    cdef tuple _outputs, _tensors
    cdef readonly OutputForm form

    cdef _keep(self, InferenceRequest request, OutputForm form)
    cdef InferenceRequest again(self, object body, const char* data, Py_ssize_t size)
    cdef InferenceRequest _with(self, dict inputs)


cdef class RepeatedAnswer:
    """Written once, by `_keep`: of which model the answer is, and its outputs as they were described."""

    cdef str _model
    cdef object _version
    cdef OutputForm _form
    cdef tuple _tensors

    cdef _keep(self, InferenceResponse response, OutputForm form)
    cdef bint _is_like(self, InferenceResponse response, OutputForm form)
    cdef bytes again(self, InferenceResponse response, OutputForm form, const char* date)


# Whether requests, or answers, may be repeated that are so.
cdef bint is_plain(InferenceRequest request)
cdef bint has_plain_answer(InferenceResponse response, OutputForm form)

# What has the bytes of a tensor, without making any where an array has them.
cdef object bytes_of(Tensor tensor)
