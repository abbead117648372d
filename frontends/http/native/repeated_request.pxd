import cython

from libc.stdint cimport int64_t, uint64_t

from core.request cimport InferenceRequest
from frontends.http.native.infer_request cimport OutputForm

cdef enum:
    # Bytes of JSON: in more than that the numbers take the time. So a short list takes little memory too much.
    MOST_JSON = 16 * 1024


@cython.final
cdef class RepeatedRequest:
    """Written once.

    request  the request that it was read as, without inputs
    tensors  its inputs, without their bytes
    texts    of the JSON: before, between and behind the parts that differ
    kinds    of these parts, as SlotKind
    shapes   the text of each shape, and `counts` the elements: most requests have those of the one before
    form     of the answer
    json     all of it, where every input is in binary: with the same JSON again only their bytes are read, of
             which each input has as many as `sizes` says, and the body `size` with the JSON; else None
    """

    cdef InferenceRequest _request
    cdef tuple _tensors, _texts, _sizes, _shapes, _counts
    cdef bytes _kinds, _json
    cdef Py_ssize_t _size
    cdef readonly OutputForm form

    # The request in a body, whose first `json_size` bytes are JSON, if it differs in these parts alone; else None.
    # `most_bytes` of a tensor in JSON.
    cdef InferenceRequest again(
        self, object body, const char* data, Py_ssize_t whole, Py_ssize_t json_size, uint64_t most_bytes
    )
    cdef InferenceRequest _like(
        self, object body, const char* data, Py_ssize_t whole, Py_ssize_t json_size, uint64_t most_bytes
    )
    cdef dict _same_inputs(self, object body, const char* data)
    cdef InferenceRequest _with(self, str id, dict inputs)


# What is to be found again of a request; None if a body with the same JSON may mean another one. `json` is all of
# it, no more than MOST_JSON bytes.
cdef RepeatedRequest repeated_request(
    InferenceRequest request, OutputForm form, bytes json, uint64_t most_bytes
)
