# distutils: language = c++
# cython: boundscheck=False, wraparound=False
"""Responses of native backends as Python objects: memory, errors, parameters."""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo

from core.abi cimport CORE_BOOLEAN, CORE_FATAL, CORE_INTEGER, CORE_TEXT

from core.errors import CoreError, Fatal, Kind

# Index: core_status. `error_of` handles CORE_FATAL.
cdef tuple _KINDS = (
    Kind.INTERNAL, Kind.INTERNAL, Kind.NOT_FOUND, Kind.INVALID, Kind.UNAVAILABLE, Kind.UNSUPPORTED,
    Kind.ALREADY_EXISTS, Kind.CANCELLED, Kind.UNKNOWN, Kind.INTERNAL,
)


@cython.final
@cython.freelist(32)
cdef class OutputMemory:
    """Bytes of an output of a native backend: read-only, with the buffer protocol. Thread-safe."""

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self._data, self._size, 1, flags)

    def __len__(self):
        return self._size

    def __dealloc__(self):
        cdef Block* block = self._block
        if block != NULL:
            with nogil:  # this may call the backend
                del block


cdef OutputMemory memory(Block* block, OutputMemory whole, char* data, uint64_t size):
    cdef OutputMemory made = OutputMemory.__new__(OutputMemory)
    made._block = block
    made._whole = whole
    made._data = data
    made._size = <Py_ssize_t>size
    return made


cdef str _text_of(const string& text, str model):
    if text.empty():
        return f"model '{model}' failed, and its backend does not say why"
    return text.decode("utf-8", "replace")


cdef error_of(int32_t status, const string& text, str model):
    """Return the CoreError for a core_status other than CORE_OK; Fatal, a CoreError, for CORE_FATAL."""
    if status == CORE_FATAL:
        return Fatal(_text_of(text, model))
    return CoreError(_KINDS[status], _text_of(text, model))


cdef dict parameters_of(vector[Parameter]& parameters):
    """Return the parameters of a response by name; None if it has none."""
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
