import cython

from backend_python.api.tensor cimport Tensor, received


cdef class Item:
    cdef public object value
    cdef public list places
    cdef public Py_ssize_t extent
    cdef public Py_ssize_t size
    cdef public bint plain
    cdef public bint lends


cdef class Laid:
    cdef public list items
    cdef public list starts
    cdef public bint plain
    cdef public bint lends


cdef class Known:
    cdef object _parse
    cdef dict _known

    @cython.locals(laid=Laid, item=Item, start=cython.Py_ssize_t, part=bytes)
    cpdef Laid of(self, bytes described, Py_ssize_t region)
    cdef Item _add(self, bytes part)


@cython.locals(i=cython.Py_ssize_t, start=cython.Py_ssize_t, item=Item, found=list, these=list)
cpdef list tensors(Laid laid, region)
