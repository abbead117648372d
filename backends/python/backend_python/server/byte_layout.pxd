import cython

# Classes of core are plain objects here: this distribution is built without core.


@cython.final
cdef class TensorSlice:
    cdef readonly str name
    cdef readonly object dtype
    cdef readonly tuple shape
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t size


@cython.final
@cython.freelist(8)
cdef class ByteLayout:
    cdef readonly list items
    cdef readonly list parts
    cdef readonly Py_ssize_t size
    cdef readonly bint plain
    cdef readonly bint named


@cython.locals(layout=ByteLayout)
cdef ByteLayout _new_layout()


@cython.final
cdef class LayoutCache:
    cdef object _describe
    cdef Py_ssize_t _alignment
    cdef tuple _outputs
    cdef dict _known
    cdef dict _by_shape

    @cython.locals(layout=ByteLayout, inputs=dict, tensors=list)
    cpdef ByteLayout batch(self, list requests)
    @cython.locals(layout=ByteLayout)
    cpdef ByteLayout tensors(self, list tensors)
    @cython.locals(i=cython.Py_ssize_t, size=cython.Py_ssize_t, gap=cython.Py_ssize_t, end=cython.Py_ssize_t,
                   known=cython.bint, each=TensorSlice, last=list, like=tuple)
    cdef bytes _item(self, list tensors, ByteLayout layout)
    cdef bytes _other_item(self, list tensors)
    cdef bint _has_only_tensors(self, request) except -1
    @cython.locals(i=cython.Py_ssize_t)
    cdef bint _wants_all(self, outputs) except -1


@cython.locals(slices=list, tensors=list, found=list, each=TensorSlice, i=cython.Py_ssize_t, begin=cython.Py_ssize_t)
cpdef list tensors_of(list items, list starts, region, Py_ssize_t offset)
