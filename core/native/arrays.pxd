cpdef object view(object raw, object dtype, tuple shape)
cpdef object flat(object array)
cpdef Py_ssize_t length(object raw) except -1
