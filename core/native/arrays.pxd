cpdef object view(object raw, object dtype, tuple shape)
cpdef object joint_view(list arrays, object dtype)
cpdef bint has_dtype(object value, object dtype) noexcept
cpdef tuple shape_of(object array)
cpdef object flat(object array, object dtype)
cpdef Py_ssize_t length(object raw) except -1
cdef Py_ssize_t fill(char* to, Py_ssize_t room, object raw) except -1
cpdef bytes joined(list parts, Py_ssize_t alignment)
cpdef object part(object raw, Py_ssize_t start, Py_ssize_t size)
