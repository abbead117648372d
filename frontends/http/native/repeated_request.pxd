import cython

from libc.stdint cimport int64_t, uint64_t

from core.config.signature cimport Signature
from core.request cimport InferenceRequest
from frontends.http.native.infer_request cimport OutputForm

cdef enum:
    # Largest JSON in bytes that is kept: in a larger one most of the time is for the numbers.
    MOST_JSON = 16 * 1024


@cython.final
cdef class RepeatedRequest:
    """A parsed request, for bodies whose JSON differs only in its slots. It does not change.

    Slots are the parts of the JSON that may differ: id, shapes, binary_data_size, lists of numbers.

    request  the parsed request, without inputs
    tensors  its inputs, without their bytes
    texts    texts of the JSON before, between and after the slots
    kinds    kinds of the slots, as SlotKind
    shapes   text of the shape of each input; `counts` are the numbers of elements
    form     form of the outputs in the response
    json     the whole JSON if every input is binary, else None: a body with identical JSON needs no parsing
    sizes, size   bytes of each input, and of the whole body; only with `json`
    """

    cdef InferenceRequest _request
    cdef tuple _tensors, _texts, _sizes, _shapes, _counts
    cdef bytes _kinds, _json
    cdef Py_ssize_t _size
    cdef readonly OutputForm form

    # Return the request in a body of `whole` bytes, whose first `json_size` bytes are JSON; None if the JSON
    # differs in more than its slots, or is invalid. `most_bytes` limits each tensor in JSON.
    cdef InferenceRequest again(
        self, object body, const char* data, Py_ssize_t whole, Py_ssize_t json_size, uint64_t most_bytes
    )
    cdef InferenceRequest _like(
        self, object body, const char* data, Py_ssize_t whole, Py_ssize_t json_size, uint64_t most_bytes
    )
    cdef dict _same_inputs(self, object body, const char* data)
    cdef InferenceRequest _with(self, str id, dict inputs)


# Return the RepeatedRequest of a parsed request and its JSON, of at most MOST_JSON bytes. None if the request
# has parameters or shared memory, or an input that is neither binary nor a list of numbers. Its inputs have the
# names of `signature`, that of the model.
cdef RepeatedRequest repeated_request(
    InferenceRequest request, OutputForm form, bytes json, uint64_t most_bytes, Signature signature
)
