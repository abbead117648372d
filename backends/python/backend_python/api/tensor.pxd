import cython

from backend_python.native.interface cimport array_of, plain_number

cdef int BF16, BYTES


cdef class Tensor:
    cdef object __weakref__
    cdef public str _name
    cdef public int _number
    cdef public object _array
    cdef public object _buffer
    cdef public tuple _shape
    cdef public Py_ssize_t _start
    cdef public Py_ssize_t _size

    cpdef _dims(self)
    cpdef _values(self)
    cpdef _wire(self)
    cpdef _renamed(self, str name)


@cython.locals(tensor=Tensor)
cpdef Tensor shared(str name, int number, array)
@cython.locals(tensors=list)
cpdef list all_shared(list arrays)
@cython.locals(tensor=Tensor)
cpdef Tensor received(str name, int number, tuple shape, buffer, Py_ssize_t start, Py_ssize_t size)
