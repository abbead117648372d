cpdef object view(object raw, object dtype, tuple shape)
cpdef bint has_dtype(object value, object dtype) noexcept
cpdef object flat(object array, object dtype)
cpdef Py_ssize_t length(object raw) except -1
