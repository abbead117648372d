# cython: boundscheck=False, wraparound=False
"""Functions of the Python backend's model interface that use the C API of Python and numpy."""

cimport numpy as np
from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF

import numpy

cdef extern from *:
    """
    #ifdef Py_TPFLAGS_IMMUTABLETYPE
    #define open_type(type) ((type)->tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE)
    #else
    #define open_type(type) ((void)(type))
    #endif
    """
    void open_type(PyTypeObject* type) noexcept

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(
        type subtype, np.dtype descr, int nd, np.npy_intp* dims, np.npy_intp* strides, void* data,
        int flags, object obj,
    )

cdef extern from *:
    const Py_ssize_t PY_SSIZE_T_MAX

from backend_python.api.datatypes import NUMBERS, NUMPY

np.import_array()

cdef enum:
    TYPES = 24  # numpy's own; those of other packages have larger numbers
    MOST_DIMENSIONS = 32  # of an array, in each release of numpy

cdef dict _dtypes = NUMPY
cdef int _numbers[TYPES]  # numpy's number of a type → that of its datatype, 0 for none


cdef _fill():
    for dtype, number in NUMBERS.items():
        _numbers[dtype.num] = number
    # Two of numpy's types are one of C's 64 bits.
    for letter in "lqLQ":
        dtype = np.dtype(letter)
        _numbers[dtype.num] = NUMBERS.get(dtype, 0)


cpdef int plain_number(object array) noexcept:
    cdef int kind
    if not np.PyArray_CheckExact(array):
        return 0
    kind = np.PyArray_TYPE(<np.ndarray>array)
    if not 0 <= kind < TYPES or not np.PyArray_IS_C_CONTIGUOUS(<np.ndarray>array):
        return 0
    return _numbers[kind] if np.PyArray_ISNOTSWAPPED(<np.ndarray>array) else 0


cpdef object array_of(object buffer, Py_ssize_t start, int number, tuple shape):
    cdef np.npy_intp[MOST_DIMENSIONS] dims
    cdef Py_ssize_t count = len(shape), i, size
    cdef np.dtype descr = _dtypes[number]
    cdef np.ndarray whole, array
    if not np.PyArray_CheckExact(buffer) or count > MOST_DIMENSIONS:
        return numpy.ndarray(shape, descr, buffer, start)
    whole = buffer
    if not np.PyArray_IS_C_CONTIGUOUS(whole):
        return numpy.ndarray(shape, descr, buffer, start)
    size = descr.itemsize
    for i in range(count):
        dims[i] = shape[i]
        if dims[i] < 0 or (dims[i] and size > PY_SSIZE_T_MAX // dims[i]):
            raise ValueError(f"shape {shape} is no shape of an array")
        size *= dims[i]
    if start < 0 or size > np.PyArray_NBYTES(whole) - start:
        raise TypeError(f"shape {shape} of {descr} from byte {start} on is beyond the buffer")
    Py_INCREF(descr)  # PyArray_NewFromDescr takes a reference
    array = PyArray_NewFromDescr(
        np.ndarray, descr, <int>count, dims, NULL, np.PyArray_BYTES(whole) + start,
        np.NPY_ARRAY_CARRAY if np.PyArray_ISWRITEABLE(whole) else np.NPY_ARRAY_CARRAY_RO, None,
    )
    np.set_array_base(array, whole)
    return array


def open_to_changes(type cls not None):
    open_type(<PyTypeObject*>cls)


_fill()
