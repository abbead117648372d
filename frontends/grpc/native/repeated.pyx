# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Fast parsing and writing of messages that differ only in the bytes of their tensors.

bytes ─► [RepeatedMessage] ─► InferenceRequest
InferenceResponse ─► [RepeatedResponseMessage] ─► bytes
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uintptr_t
from libc.string cimport memcmp, memcpy

from core.native.arrays cimport fill, has_dtype, length
from core.request cimport InferenceRequest
from core.response cimport InferenceResponse
from core.tensor cimport Tensor, new_tensor

cdef enum:
    PLACES = 16  # number of slots for kept messages, a power of two
    LARGEST = 8 * 1024  # bytes of a kept message
    EACH = 8  # one of so many different messages may take a slot

cdef list _answers = [None] * PLACES  # RepeatedResponseMessage or None at each place
cdef unsigned int _missed = 0


cdef class MessageReader:
    """Base of RequestReader: parses messages, and keeps some of them for similar later ones.

    A kept message has a slot by its size. A subclass defines `read_anew`, which parses any message.
    """

    def __cinit__(self):
        self._kept = [None] * PLACES

    cpdef read(self, bytes data, ledger=None):
        self.held = 0
        if data is None:
            raise TypeError("read() takes the bytes of a message, found None")
        cdef RepeatedMessage like = self._kept[PyBytes_GET_SIZE(data) % PLACES]
        if like is not None and like.is_like(data):
            return like.again(data)
        return self.read_anew(data, ledger)

    cdef read_anew(self, bytes data, ledger):
        raise NotImplementedError

    cdef keep(self, bytes data, InferenceRequest request, list starts):
        """Take each message that was parsed anew; keep one of EACH for comparison with later ones.

        That one is not kept if it is large, has parameters, or has an input without raw bytes; the turn is lost.

        starts   position of the bytes of each input, in order; None for an input without raw bytes
        """
        cdef Py_ssize_t end = 0, start
        cdef Tensor tensor
        cdef RepeatedMessage kept
        cdef list sizes = [], tensors = []
        self._missed += 1
        if self._missed % EACH != 1 or PyBytes_GET_SIZE(data) > LARGEST or request._parameters:
            return
        for place, each in zip(starts, request.inputs.values()):
            tensor = each
            if place is None or place < end:
                return
            start = place
            size = length(tensor._raw)
            end = start + size
            tensors.append(new_tensor(tensor.name, tensor.dtype, tensor.shape, None, None))
            sizes.append(size)
        kept = RepeatedMessage.__new__(RepeatedMessage)
        kept._data = data
        kept._request = request.copy_with({})
        kept._tensors, kept._starts, kept._sizes = tuple(tensors), tuple(starts), tuple(sizes)
        self._kept[PyBytes_GET_SIZE(data) % PLACES] = kept


@cython.final
cdef class RepeatedMessage:
    """A parsed message, kept to parse messages that differ only in the bytes of their tensors."""

    cdef bint is_like(self, bytes data):
        """Return whether a message differs only in the bytes of its tensors."""
        cdef const char* ours = PyBytes_AS_STRING(self._data)
        cdef const char* theirs = PyBytes_AS_STRING(data)
        cdef Py_ssize_t i, at = 0, start, end = PyBytes_GET_SIZE(data)
        if end != PyBytes_GET_SIZE(self._data):
            return False
        for i in range(len(self._starts)):
            start = self._starts[i]
            if memcmp(ours + at, theirs + at, start - at):
                return False
            at = start + <Py_ssize_t>self._sizes[i]
        return not memcmp(ours + at, theirs + at, end - at)

    cdef InferenceRequest again(self, bytes data):
        """Return the request in a message for which `is_like` is True; its tensors are copies."""
        cdef const char* begin = PyBytes_AS_STRING(data)
        cdef dict inputs = {}
        cdef Tensor like
        cdef Py_ssize_t i, start, size
        for i in range(len(self._tensors)):
            like = <Tensor>self._tensors[i]
            start = self._starts[i]
            size = self._sizes[i]
            inputs[like.name] = new_tensor(
                like.name, like.dtype, like.shape, PyBytes_FromStringAndSize(begin + start, size), None
            )
        return self._request.copy_with(inputs)


@cython.final
cdef class RepeatedResponseMessage:
    """A written message, kept to write responses that differ only in the bytes of their tensors."""

    cdef bytes again(self, InferenceResponse response):
        """Return the message of a response that differs only in the bytes of its tensors, else None."""
        cdef list outputs = response.outputs
        cdef Py_ssize_t i, count = len(self._tensors), start, size
        cdef Tensor tensor, like
        if (
            response.model_name is not self._model
            or response.model_version is not self._version
            or response._parameters
            or len(response.id)
            or len(outputs) != count
        ):
            return None
        for i in range(count):
            tensor = <Tensor>outputs[i]
            like = <Tensor>self._tensors[i]
            if (
                tensor.dtype is not like.dtype
                or tensor.name != like.name
                or tensor.shape != like.shape
            ):
                return None
        cdef bytes message = PyBytes_FromStringAndSize(NULL, PyBytes_GET_SIZE(self._data))
        cdef char* begin = PyBytes_AS_STRING(message)
        memcpy(begin, PyBytes_AS_STRING(self._data), PyBytes_GET_SIZE(self._data))
        for i in range(count):
            start = self._starts[i]
            size = self._sizes[i]
            if fill(begin + start, size, _bytes_of(<Tensor>outputs[i])) != size:
                return None
        return message


cdef inline object _bytes_of(Tensor tensor):
    """Return the object with the bytes of a tensor: its array if that has its dtype, else tensor.raw."""
    if tensor._raw is None and has_dtype(tensor._array, tensor.dtype.numpy):
        return tensor._array
    return tensor._as_raw()


cdef inline Py_ssize_t _place(str model) noexcept:
    """Return the slot for responses of a model, from the address of its name: each model has one str."""
    return <Py_ssize_t>((<uintptr_t><void*>model >> 4) % PLACES)


cdef bytes answered_again(InferenceResponse response):
    """Return the message of a response that is similar to a kept one, else None."""
    cdef RepeatedResponseMessage like = _answers[_place(response.model_name)]
    return None if like is None else like.again(response)


cdef keep_answer(InferenceResponse response, bytes message, list raws):
    """Keep one of EACH messages for comparison with later responses; no large message, nor one with an id,
    parameters or a BYTES output.

    raws   bytes of its tensors; in the message each follows its size, and the last one ends the message
    """
    cdef RepeatedResponseMessage kept
    cdef Tensor tensor
    cdef Py_ssize_t i, end = PyBytes_GET_SIZE(message), size, rest
    cdef list tensors = [], starts = [], sizes = []
    global _missed
    _missed += 1
    if _missed % EACH != 1 or end > LARGEST or response._parameters or response.id:
        return
    for i in range(len(raws) - 1, -1, -1):
        tensor = response.outputs[i]
        size = length(raws[i])
        if not tensor.dtype.byte_size:
            return
        tensors.append(new_tensor(tensor.name, tensor.dtype, tensor.shape, None, None))
        starts.append(end - size)
        sizes.append(size)
        end -= size + 2  # the tag, and the last byte of the size
        rest = size >> 7
        while rest:
            end -= 1
            rest >>= 7
    kept = RepeatedResponseMessage.__new__(RepeatedResponseMessage)
    kept._data = message
    kept._model = response.model_name
    kept._version = response.model_version
    kept._tensors = tuple(reversed(tensors))
    kept._starts = tuple(reversed(starts))
    kept._sizes = tuple(reversed(sizes))
    _answers[_place(response.model_name)] = kept
