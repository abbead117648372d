import cython

from core.dtypes cimport DataType
from core.native.arrays cimport flat, view


@cython.freelist(32)
cdef class Tensor:
    cdef public str name
    cdef public DataType dtype
    cdef public tuple shape
    cdef object _raw
    cdef object _array

    cpdef Tensor renamed(self, str name)


@cython.locals(tensor=Tensor)
cpdef Tensor made_tensor(str name, DataType dtype, tuple shape, raw, array)
