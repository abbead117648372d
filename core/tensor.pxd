import cython

from core.dtypes cimport DataType
from core.native.arrays cimport flat, part, shape_of, view


cdef class Tensor:
    cdef public str name
    cdef public DataType dtype
    cdef public tuple shape
    cdef object _raw
    cdef object _array

    cpdef _as_raw(self)
    cpdef _as_array(self)
    cpdef Tensor renamed(self, str name)


@cython.locals(tensor=Tensor)
cpdef Tensor new_tensor(str name, DataType dtype, tuple shape, raw, array)
cpdef Tensor tensor_part(str name, DataType dtype, tuple shape, region, Py_ssize_t start, Py_ssize_t size)
cpdef Tensor array_tensor(str name, Py_ssize_t number, array)
