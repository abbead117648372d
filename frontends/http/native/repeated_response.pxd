import cython

from core.response cimport InferenceResponse
from frontends.http.native.infer_request cimport OutputForm


@cython.final
cdef class RepeatedResponse:
    """Written once.

    tensors  the outputs as they were described; `binary` tells for each whether its bytes are behind the JSON
    texts    of the JSON: before, between and behind the parts that differ, `text_size` bytes in all
    start    of the head, before the server's own fields
    same     head and JSON of an answer without an id whose outputs are all in binary and have the shapes of
             `tensors`; the date is at `date_at`, and `same_size` bytes are the whole of it. Else None
    """

    cdef str _model
    cdef object _version
    cdef OutputForm _form
    cdef tuple _tensors, _texts
    cdef bytes _binary, _start, _same
    cdef Py_ssize_t _date_at, _same_size
    cdef size_t _text_size
    cdef bint _has_binary

    # The whole answer, if it differs in date, id, shapes, sizes and numbers alone; else None.
    cdef bytes again(self, InferenceResponse response, OutputForm form, const char* date)
    cdef bint _is_like(self, InferenceResponse response, OutputForm form)
    cdef bint _has_same_shapes(self, list outputs)
    cdef bytes _like(self, InferenceResponse response, const char* date)
    cdef bytes _again_same(self, list outputs, const char* date)
    cdef bytes _whole(
        self, const char* json, Py_ssize_t json_size, list outputs, Py_ssize_t binary, const char* date
    )


# What is to be found again of an answer; None where its JSON depends on more than id and tensors. `start` is the
# beginning of its head, before the server's own fields, and before the size of the JSON if a tensor is in binary;
# `answer` is all of it.
cdef RepeatedResponse repeated_response(
    InferenceResponse response, OutputForm form, bytes start, bytes answer
)
