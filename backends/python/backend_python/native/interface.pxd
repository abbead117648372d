cpdef int plain_number(object array) noexcept
cpdef object array_of(object buffer, Py_ssize_t start, int number, tuple shape)
