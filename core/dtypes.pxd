cdef class DataType:
    cdef readonly str name
    cdef readonly str config_name
    cdef readonly int number
    cdef readonly Py_ssize_t byte_size
    cdef readonly object numpy
