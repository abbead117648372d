import cython

from core.response cimport InferenceResponse
from frontends.http.native.infer_request cimport OutputForm


@cython.final
cdef class RepeatedResponse:
    """A written response, kept to write responses that differ only in their slots. It does not change.

    Slots are the parts of the JSON that may differ: id, shapes, binary_data_size, lists of numbers.

    tensors  outputs of the response, without their bytes; `binary` has 1 for each binary one, else 0
    texts    texts of the JSON before, between and after the slots, `text_size` bytes in all
    start    status line and first fields of the head
    same     head and JSON of the response if it has no id and only binary outputs, else None: a response with
             the same shapes needs only a new date, at `date_at`, and new outputs
    same_size   size of that whole response in bytes
    """

    cdef str _model
    cdef object _version
    cdef OutputForm _form
    cdef tuple _tensors, _texts
    cdef bytes _binary, _start, _same
    cdef Py_ssize_t _date_at, _same_size
    cdef size_t _text_size
    cdef bint _has_binary

    # Return head and body of a response that differs only in date, id, shapes, sizes and numbers. None if it
    # differs in more, or is too large to be copied.
    cdef bytes again(self, InferenceResponse response, OutputForm form, const char* date)
    cdef bint _is_like(self, InferenceResponse response, OutputForm form)
    cdef bint _has_same_shapes(self, list outputs)
    cdef bytes _like(self, InferenceResponse response, const char* date)
    cdef bytes _again_same(self, list outputs, const char* date)
    cdef bytes _whole(
        self, const char* json, Py_ssize_t json_size, list outputs, Py_ssize_t binary, const char* date
    )


# Return the RepeatedResponse of a written response; None if its JSON depends on more than id, shapes and
# numbers.
#
# start    status line and first fields of its head, up to the JSON size if an output is binary
# answer   the whole response
cdef RepeatedResponse repeated_response(
    InferenceResponse response, OutputForm form, bytes start, bytes answer
)
