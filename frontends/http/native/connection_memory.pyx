# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""ConnectionMemory: one connection's share of the memory account.

FastConnection ─► [ConnectionMemory] ─► Share ─► MemoryAccount
"""

cimport cython
from cpython.bytes cimport PyBytes_GET_SIZE
from libc.stdint cimport int64_t

from core.request cimport InferenceRequest
from core.tensor cimport Tensor

from core.system.account import UNCOUNTED
from core.errors import MemoryExhausted

cdef int64_t _UNCOUNTED = UNCOUNTED


@cython.final
cdef class ConnectionMemory:
    """Counts the bytes of one connection; only bytes beyond UNCOUNTED are taken from the account."""

    cdef hold(self, int64_t size, str what):
        """Count `size` bytes more for `what`; return None. If the account refuses them, count nothing and
        return its MemoryExhausted.
        """
        cdef int64_t more = self.held + size - _UNCOUNTED - self._taken
        if more > 0:
            try:
                self.share.take(more, what)
            except MemoryExhausted as error:
                return error
            self._taken += more
        self.held += size
        return None

    cdef release(self, int64_t size):
        """Count `size` bytes less."""
        cdef int64_t spare
        self.held -= size
        if self._taken:
            spare = self._taken - max(<int64_t>0, self.held - _UNCOUNTED)
            if spare > 0:
                self.share.give(spare)
                self._taken -= spare

    cdef close(self):
        """Release all bytes, at the end of the connection."""
        self.release(self.held)


cdef ConnectionMemory memory_of(share):
    cdef ConnectionMemory found = ConnectionMemory.__new__(ConnectionMemory)
    found.share = share
    return found


cdef int64_t made_for(InferenceRequest request, bint has_binary) except -1:
    cdef int64_t size = 0
    cdef Tensor tensor
    for value in request.inputs.values():
        tensor = <Tensor>value
        if type(tensor._raw) is bytes:
            size += PyBytes_GET_SIZE(tensor._raw)
        elif tensor._raw is None and tensor._array is not None and not has_binary:
            size += tensor._array.nbytes
    return size


def made_bytes(InferenceRequest request, bint has_binary):
    return made_for(request, has_binary)


cdef int64_t size_of(answer) except -1:
    cdef int64_t size = 0
    if type(answer) is bytes:
        return PyBytes_GET_SIZE(answer)
    for buffer in answer:
        size += len(buffer)
    return size
