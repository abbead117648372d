import cython

from core.request cimport InferenceRequest
from core.response cimport InferenceResponse
from core.tensor cimport Tensor
from frontends.http.native.infer_request cimport OutputForm


@cython.final
cdef class RepeatedRequest:
    """Written once.

    size     bytes of the body
    json     the JSON of the body, before its tensors
    tensors  the inputs that it was read as, without their bytes, of which there are `sizes`; what else the
             request said stands beside them
    form     of the answer
    """

    cdef Py_ssize_t _size
    cdef bytes _json
    cdef str _model, _id
    cdef long long _version
    cdef object _correlation_id, _priority, _timeout_us
    cdef int _flags
    cdef tuple _outputs, _tensors, _sizes
    cdef readonly OutputForm form

    cdef bint begins(self, bytes body)
    cdef InferenceRequest again(self, bytes body)


cdef RepeatedRequest repeated_request(
    InferenceRequest request, OutputForm form, bytes body, Py_ssize_t json_size
)


@cython.final
cdef class RepeatedAnswer:
    """Written once.

    text      the head and the JSON of the answer, in which the date is at `date_at`
    tensors   as they were described; sizes in bytes
    """

    cdef bytes _text
    cdef Py_ssize_t _date_at, _size
    cdef str _model
    cdef object _version
    cdef OutputForm _form
    cdef tuple _tensors, _sizes

    cdef bytes again(self, InferenceResponse response, OutputForm form, const char* date)


cdef RepeatedAnswer repeated_answer(
    InferenceResponse response, OutputForm form, bytes answer, list parts
)
