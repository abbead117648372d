import cython

cdef int _LONGEST_LINE, _MOST_TRAILERS, _MOST_DIGITS
cdef int _AT_SIZE, _IN_DATA, _AFTER_DATA, _IN_TRAILERS
cdef int _CR, _LF, _TAB, _SPACE, _SEMICOLON, _DELETE


@cython.locals(at=Py_ssize_t, begin=Py_ssize_t, length=cython.longlong, pieces=list)
cpdef bytes without_chunks(bytes body)
@cython.locals(end=Py_ssize_t, last=Py_ssize_t)
cdef Py_ssize_t _data_at(bytes body, Py_ssize_t at) except -1
@cython.locals(found=cython.longlong, digit=int)
cdef long long _size_at(bytes body, Py_ssize_t at) except -1
cdef int _digit(int byte) noexcept


@cython.final
cdef class ChunkScanner:
    cdef readonly bint done
    cdef Py_ssize_t _most
    cdef Py_ssize_t _count
    cdef int _state
    cdef long long _left
    cdef bytes _line
    cdef Py_ssize_t _trailers

    @cython.locals(at=Py_ssize_t, size=Py_ssize_t, step=Py_ssize_t, after=Py_ssize_t, end=Py_ssize_t)
    cpdef Py_ssize_t feed(self, bytes data, Py_ssize_t begin) except -1
    cdef _begin(self, long long size)
    cdef _take(self, bytes line)
