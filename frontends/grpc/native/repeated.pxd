import cython

from core.request cimport InferenceRequest
from core.response cimport InferenceResponse


cdef class MessageReader:
    cdef list _kept  # RepeatedMessage or None at each place
    cdef unsigned int _missed
    cdef readonly Py_ssize_t held

    cpdef read(self, bytes data, ledger=*)
    cdef read_anew(self, bytes data, ledger)
    cdef keep(self, bytes data, InferenceRequest request, list starts)


@cython.final
cdef class RepeatedMessage:
    """A parsed message, which does not change: bytes, request, and positions and sizes of the tensors."""

    cdef bytes _data
    cdef InferenceRequest _request
    cdef tuple _tensors, _starts, _sizes

    cdef bint is_like(self, bytes data)
    cdef InferenceRequest again(self, bytes data)


@cython.final
cdef class RepeatedResponseMessage:
    """A written message, which does not change: bytes, model, and positions and sizes of the tensors."""

    cdef bytes _data
    cdef str _model
    cdef object _version
    cdef tuple _tensors, _starts, _sizes

    cdef bytes again(self, InferenceResponse response)


cdef bytes answered_again(InferenceResponse response)
cdef keep_answer(InferenceResponse response, bytes message, list raws)
