import cython

cdef int _QUOTE, _BACKSLASH, _COMMA
cdef int _OBJECT, _OBJECT_END, _LIST, _LIST_END
cdef int _SPACE, _SHORT, _BLOCK, _MOST_ESCAPED
cdef int _NO, _YES, _PERHAPS


@cython.locals(
    size=Py_ssize_t, at=Py_ssize_t, after=Py_ssize_t, begin=Py_ssize_t, end=Py_ssize_t,
    depth=Py_ssize_t, escaped=int, found=int, is_key=bint, byte=int,
)
cpdef str text_at_top(bytes json, bytes key)
@cython.locals(size=Py_ssize_t, length=Py_ssize_t, each=Py_ssize_t)
cdef int _is_key(bytes json, Py_ssize_t at, Py_ssize_t after, bytes key) except -1
@cython.locals(
    size=Py_ssize_t, blocks_from=Py_ssize_t, end=Py_ssize_t, stop=Py_ssize_t, found=Py_ssize_t, byte=int
)
cdef Py_ssize_t _after_text(bytes json, Py_ssize_t at) except -1
@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _after_spaces(bytes json, Py_ssize_t at) except -1
