# distutils: language = c++
# cython: boundscheck=False, wraparound=False
"""What a native backend has answered, as Python has it: memory, errors, parameters; see answered.pyi."""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo

from core.abi cimport CORE_BOOLEAN, CORE_FATAL, CORE_INTEGER, CORE_TEXT

from core.errors import CoreError, Fatal, Kind

# By core_status; a Fatal is made elsewhere.
cdef tuple _KINDS = (
    Kind.INTERNAL, Kind.INTERNAL, Kind.NOT_FOUND, Kind.INVALID, Kind.UNAVAILABLE, Kind.UNSUPPORTED,
    Kind.ALREADY_EXISTS, Kind.CANCELLED, Kind.UNKNOWN, Kind.INTERNAL,
)


@cython.final
@cython.freelist(32)
cdef class Memory:
    """Bytes of an output, read only: a block of its own, or a part of another one's."""

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self._data, self._size, 1, flags)

    def __len__(self):
        return self._size

    def __dealloc__(self):
        cdef Block* block = self._block
        if block != NULL:
            with nogil:  # a backend may be told
                del block


cdef Memory memory(Block* block, Memory whole, char* data, uint64_t size):
    cdef Memory made = Memory.__new__(Memory)
    made._block = block
    made._whole = whole
    made._data = data
    made._size = <Py_ssize_t>size
    return made


cdef str _said(const string& text, str model):
    if text.empty():
        return f"model '{model}' failed, and its backend does not say why"
    return text.decode("utf-8", "replace")


cdef error_of(int32_t status, const string& text, str model):
    """The error that a status is, of the core_status that is not CORE_OK."""
    if status == CORE_FATAL:
        return Fatal(_said(text, model))
    return CoreError(_KINDS[status], _said(text, model))


cdef dict parameters_of(vector[Parameter]& parameters):
    """The parameters of a response; None for none."""
    cdef Parameter* each
    cdef size_t i
    if parameters.empty():
        return None
    cdef dict found = {}
    for i in range(parameters.size()):
        each = &parameters[i]
        name = each.name.decode("utf-8", "replace")
        if each.kind == CORE_TEXT:
            found[name] = each.text.decode("utf-8", "replace")
        elif each.kind == CORE_INTEGER:
            found[name] = each.integer
        elif each.kind == CORE_BOOLEAN:
            found[name] = each.integer != 0
        else:
            found[name] = each.number
    return found
